package aws

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// A round trip is what a move waits for: a process, the identity of the host, the change and
// the read that shows it. The fake answers at once.
func BenchmarkAssign(b *testing.B) {
	for name, run := range map[string]executor.Execute{
		"within":  Execute,
		"process": (&executor.Command{Path: executortest.Binary(b)}).Run,
	} {
		b.Run(name, func(b *testing.B) {
			f := executortest.StartEC2(b)
			for _, entry := range f.Environment() {
				name, value, _ := strings.Cut(entry, "=")
				b.Setenv(name, value)
			}
			q := executor.Request{
				Version: executor.Version, ID: "bench", Verb: capture.Assign, Address: netip.MustParseAddr("10.0.0.100"), Reassign: true,
				Profile: executor.Profile{Provider: "aws", Endpoint: f.URL()},
			}
			nics := []string{"eni-a", "eni-b"}
			for _, id := range nics {
				f.AddNIC(executortest.Interface{ID: id, Subnet: "subnet-1"})
			}
			for i := 0; b.Loop(); i++ {
				q.NIC = nics[i%2]
				if r := run(context.Background(), q); r.Outcome != executor.OutcomeDone {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}
