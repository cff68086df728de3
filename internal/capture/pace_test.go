package capture

import (
	"testing"
	"time"
)

// Of a profile that its provider has throttled one attempt begins after the other; another profile is
// not concerned.
func TestAPaceIsThatOfAProfile(t *testing.T) {
	w := newScene()
	w.pool("p", 3, "a")
	q := w.pool("q", 3, "a")
	q.Members[0].Capture.ProviderRef, q.Members[0].Capture.NIC = "cloud-b", "eni-b"
	for i := range q.Addresses {
		q.Addresses[i].Addr = addr(byte(100 + i))
	}
	w.policy.ProviderRefs = append(w.policy.ProviderRefs, "cloud-b")
	s := w.snapshot()
	s.Providers = map[string]string{providerRef: "aws", "cloud-b": "aws"}
	gap := 200 * time.Millisecond
	for wait, runs := range map[time.Duration]int{time.Second: 0, 0: 1, -time.Hour: 1} {
		next := w.now.Add(wait)
		s.Paces = map[string]Pace{providerRef: {next, gap}}
		d := Decide(s, w.now)
		if runs > 0 {
			next = w.now.Add(gap)
		}
		of := map[string]int{}
		for _, r := range d.Plan.Runs {
			of[r.ProviderRef]++
		}
		if of[providerRef] != runs || of["cloud-b"] != 4 {
			t.Errorf("the next in %s: there begin %v, want %d and 4", wait, of, runs)
		}
		for _, h := range d.Held {
			if h.Wait != WaitPace || !h.Until.Equal(next) || h.Action.ProviderRef != providerRef {
				t.Errorf("held: %+v", h)
			}
		}
		if len(d.Held) != 4-runs || !d.Wake.Equal(next) {
			t.Errorf("%d are held until %s, want %d until %s", len(d.Held), d.Wake, 4-runs, next)
		}
		if s.Paces[providerRef].Next.Sub(w.now) != wait {
			t.Error("a decision changes its snapshot")
		}
	}
}

// Whoever was refused is in line behind all others, and whoever was refused last is last.
func TestWhoWasRefusedIsLastInLine(t *testing.T) {
	w := newScene()
	p := w.pool("p", 4, "a")
	want := []byte{2, 4, 3, 1} // 2 has not been tried
	for i, n := range []int{9, 0, 8, 7} {
		k := Key{"p", addr(byte(i + 1)), p.Members[0].Domain()}
		w.view.Learn(k, Claim{1, "a"}, w.now)
		row := Action{Token: Token{Assign, k, 1, "a"}, Target: Target{"aws", providerRef, "eni-a"}, State: Approved}
		if n > 0 {
			row.Attempts, row.NotBefore = 10-n, w.now.Add(time.Duration(n-10)*time.Second)
		}
		w.view.Record(row)
	}
	var got []byte
	for _, r := range w.decide().Plan.Runs {
		if r.Verb == Assign {
			got = append(got, r.Key.Address.As4()[3])
		}
	}
	if string(got) != string(want) {
		t.Errorf("the addresses begin in the order %v, want %v", got, want)
	}
}
