package cloud

import (
	"net/netip"
	"slices"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// Found is the result of a Locate that has read its NIC, and then the subnet: on are the NICs by
// the address that they have.
func (s *Session) Found(nic *executor.NIC, on map[netip.Addr][]string) executor.Result {
	r := executor.Result{Outcome: executor.OutcomeDone, NIC: nic}
	for _, a := range s.Addresses {
		nics := slices.Sorted(slices.Values(on[a]))
		r.Places = append(r.Places, executor.Place{Address: a, NICs: append([]string{}, slices.Compact(nics)...)})
	}
	return r
}
