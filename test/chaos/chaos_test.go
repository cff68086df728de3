package chaos

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

var (
	lasting = flag.Duration("chaos.for", 25*time.Second, "how long faults are brought about")
	seed    = flag.Uint64("chaos.seed", 0, "of the faults; 0 takes one by the clock")
	ttl     = flag.Duration("chaos.ttl", 3*time.Second, "leaseTTL")
	many    = flag.Int("chaos.addresses", 200, "that are held, 250 at most")
	slack   = flag.Duration("chaos.slack", 0, "more than leaseTTL + 2 s that an address may take, for a machine that is slow or busy")
)

// Three hosts, two hundred addresses, and a cluster of three members, of which none is spared
// (cases c05, c06, c07, c09, c10, c15, c18). The times are those at which EC2 has moved an
// address; they are counted from the end of the last fault of a round, whatever it was, so that
// neither a cluster without a quorum nor a provider that is ill counts.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes take their time: make chaos-capture")
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	again := fmt.Sprintf("go test ./test/chaos -run 'TestChaos$' -v -timeout 60m -chaos.for %s -chaos.ttl %s -chaos.addresses %d -chaos.slack %s -chaos.seed %d", *lasting, *ttl, *many, *slack, *seed)
	t.Logf("seed %d; the same faults once more, in whatever order the machine lets things happen:\n  %s", *seed, again)
	w := newSite(t, shape{hosts: []string{"a", "b", "c"}, pools: 1, each: *many}, *ttl, buildAgent(t, settable(t)...))
	j, r, took := newJudge(w), rand.New(rand.NewPCG(*seed, 0)), takeovers{}
	begun := time.Now()
	for _, a := range w.agents {
		a.start(0)
	}
	wait(t, "every address held for the first time", 5*time.Minute, func() bool { return len(w.missing()) == 0 })
	t.Logf("every address is held %.2f s after the start of the agents", time.Since(begun).Seconds())

	rounds, waited, worst := 0, 0, time.Duration(0)
	for end := time.Now().Add(*lasting); time.Now().Before(end) && len(j.broken) == 0; rounds++ {
		faults := w.draw(r)
		last := w.befall(faults)
		late, excused := j.settle(last)
		var what []string
		for _, f := range faults {
			what = append(what, fmt.Sprintf("%s (%.1f s)", f.what, f.ended.Sub(f.began).Seconds()))
			if f.host != "" {
				took.add(j, f)
			}
		}
		note := ""
		if n := len(excused); n > 0 {
			note = fmt.Sprintf("; but %d that waited for an attempt which began before, %.2f s", n, slices.Max(excused).Seconds())
		}
		t.Logf("round %d at %s: %s: every address held %.2f s after%s", rounds, time.Now().UTC().Format("15:04:05"), strings.Join(what, ", "), late.Seconds(), note)
		waited, worst = waited+len(excused), max(worst, late)
	}
	if len(j.broken) == 0 {
		j.rest()
	}
	j.secrets()
	t.Logf("%d rounds; the last address was held at most %.2f s after the last fault of a round (the bound is %s, and %d addresses had to wait for attempts that began before)", rounds, worst.Seconds(), w.bound(), waited)
	t.Logf("from the loss of a holder to its addresses on another NIC: %s", took)
	j.count(t)
	for _, b := range j.broken[:min(len(j.broken), 20)] {
		t.Error(b)
	}
	if t.Failed() {
		t.Logf("%d violations; seed %d: %s", len(j.broken), *seed, again)
	}
}

// bound is the longest time for which an address may not be held after the last fault.
func (w *site) bound() time.Duration { return w.ttl + 2*time.Second + *slack }

// settle waits until a host that has come back has had its TTL to change something, every
// address is held and nothing is under way. It returns how long after
// the last fault the last address was held, and for how long those were not that took longer, as
// they may when an attempt has begun before.
func (j *judge) settle(over time.Time) (late time.Duration, excused []time.Duration) {
	w := j.w
	for end := time.Now().Add(2*time.Minute + *slack); time.Since(over) < w.ttl || len(w.missing()) > 0 || j.open(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			missing, on, claims := w.missing(), w.on(), w.claims.current()
			for _, a := range missing {
				j.breaks("I4: %s is on %q and the claim is %s's at epoch %d, and so it stays", a, on[a], claims[a].Holder, claims[a].Epoch)
			}
			if len(missing) == 0 {
				j.breaks("attempts go on and on")
			}
			return time.Since(over), nil
		}
	}
	j.judge()
	for a, c := range w.claims.current() {
		at, until := j.stayed(a, c), j.excused(w.key(a), c.Holder, over)
		if after := at.Sub(over); until.After(over) && after > w.bound() {
			excused = append(excused, after)
		} else {
			late = max(late, after)
		}
		if more := at.Sub(until.Add(w.bound())); more > 0 {
			j.breaks("I4: %s is held by %s since %.2f s after the last fault, %.2f s more than it may take", a, c.Holder, at.Sub(over).Seconds(), more.Seconds())
		}
	}
	return late, excused
}

// key is that of an address, as logs write it.
func (w *site) key(a netip.Addr) string {
	for p := range w.shape.pools {
		if a.As4()[2] == byte(p) {
			return capture.Key{Pool: fmt.Sprintf("p%d", p), Address: a, Domain: "provider:fake:placement:g"}.String()
		}
	}
	return ""
}

// rest waits for a while in which nothing is asked for and nothing claimed. With nothing going
// wrong it has to come (I10).
func (j *judge) rest() {
	w, still := j.w, 2*j.w.ttl+2*time.Second // longer than anything waits: a lease, a hold
	for end := time.Now().Add(2*time.Minute + *slack); ; time.Sleep(w.ttl / 10) {
		last := w.claims.last()
		for _, c := range w.ec2.Calls() {
			if c.Changes() && c.At.After(last) {
				last = c.At
			}
		}
		switch {
		case time.Since(last) > still && !j.open() && len(w.missing()) == 0:
			j.judge()
			return
		case time.Now().After(end):
			j.breaks("I10: without a fault for minutes, and the last claim or call that changes something is %s old", time.Since(last))
			return
		}
	}
}

// secrets looks for credentials in what the agents have written (I12).
func (j *judge) secrets() {
	for _, a := range j.w.agents {
		a.signal(syscall.SIGTERM)
	}
	for _, a := range j.w.agents {
		<-a.read
		_ = a.cmd.Wait()
		files, _ := filepath.Glob(j.w.path(a.name, "state", "*"))
		for _, file := range append(files, j.w.path(a.name, "log")) {
			b, err := os.ReadFile(file)
			if err != nil {
				continue // the socket
			}
			for _, secret := range []string{"fake-secret-access-key", "fake-session-token"} {
				if bytes.Contains(b, []byte(secret)) {
					j.breaks("I12: a credential is in %s", file)
				}
			}
		}
	}
}

// count tells what was asked of EC2.
func (j *judge) count(t *testing.T) {
	changes, seized := 0, 0
	for _, line := range j.w.claims.addresses() {
		changes += len(line)
		for _, c := range line {
			if c.Holder != "" {
				seized++
			}
		}
	}
	actions := slices.Sorted(maps.Keys(j.asked))
	t.Logf("%d changes of holder of %d addresses; calls for each:", changes, len(j.w.addresses()))
	for _, a := range actions {
		t.Logf("  %-32s %6d, %.2f", a, j.asked[a], float64(j.asked[a])/float64(max(seized, 1)))
	}
}
