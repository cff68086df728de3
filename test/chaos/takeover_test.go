package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// takeovers are the times from the moment at which a holder was gone to that at which EC2 had
// an address on another NIC.
type takeovers []time.Duration

// add takes those in that a fault has brought about while it lasted.
func (t *takeovers) add(j *judge, f *fault) {
	for a, line := range j.w.claims.addresses() {
		i := slices.IndexFunc(line, func(c claim) bool { return c.seen.After(f.began) })
		if i < 1 || line[i-1].Holder != f.host || line[i].seen.After(f.ended) {
			continue // somebody else had it, or nobody took it meanwhile
		}
		for _, m := range j.moves[a] {
			if m.epoch == line[i].Epoch && m.host == line[i].Holder {
				*t = append(*t, m.at.Sub(f.began))
				break
			}
		}
	}
}

// String is a histogram.
func (t takeovers) String() string {
	if len(t) == 0 {
		return "no takeovers"
	}
	all := slices.Sorted(slices.Values(t))
	at := func(share float64) time.Duration { return all[min(len(all)-1, int(share*float64(len(all))))] }
	var b strings.Builder
	fmt.Fprintf(&b, "%d takeovers, p50 %.2f s, p90 %.2f s, p99 %.2f s, max %.2f s\n",
		len(all), at(0.5).Seconds(), at(0.9).Seconds(), at(0.99).Seconds(), all[len(all)-1].Seconds())
	const width = 500 * time.Millisecond
	count := map[time.Duration]int{}
	most := 0
	for _, d := range all {
		count[d/width]++
		most = max(most, count[d/width])
	}
	for i := all[0] / width; i <= all[len(all)-1]/width; i++ {
		if count[i] == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %5.1f s %6d %s\n", (i * width).Seconds(), count[i], strings.Repeat("#", (count[i]*60+most-1)/most))
	}
	return b.String()
}
