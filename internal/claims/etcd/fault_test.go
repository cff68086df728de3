package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/claims/claimstest"
)

const domain = "provider:c:placement:g"

func key(i int) capture.Key {
	return capture.Key{Pool: "blue", Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Domain: domain}
}

// hasty gives up soon, so that a test meets many errors.
func hasty(members ...*member) Options {
	return Options{Endpoints: endpoints(members...), Timeout: 1500 * time.Millisecond}
}

// moves takes a claim one epoch on, however often that is refused or not answered, and returns
// what it is then.
func moves(t testing.TB, s *Store, k capture.Key, holder capture.Holder) (now capture.Claim) {
	t.Helper()
	var last error
	eventually(t, "a bump of "+k.String(), func() bool {
		if now, last = s.Claim(t.Context(), k); last != nil {
			return false
		}
		to := capture.Claim{Epoch: now.Epoch + 1, Holder: holder}
		var done []bool
		done, last = s.Bump(t.Context(), []capture.Bump{{Key: k, From: now, To: to}})
		now = to
		return last == nil && done[0]
	})
	return now
}

// traffic reads and bumps two keys as long as it is let, through every member and through each
// alone, and writes down what it is told.
type traffic struct {
	*claimstest.History
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func newTraffic(t *testing.T, c *cluster) *traffic {
	ctx, stop := context.WithCancel(t.Context())
	f := &traffic{History: claimstest.NewHistory(), stop: stop}
	t.Cleanup(func() { stop(); f.wg.Wait() })
	stores := []*Store{opened(t, hasty(c.Members...)), opened(t, hasty(c.Members...))}
	for _, m := range c.Members {
		stores = append(stores, opened(t, hasty(m)))
	}
	for client := range 2 * len(stores) {
		store, rng := stores[client%len(stores)], rand.New(rand.NewPCG(uint64(client), 0))
		f.wg.Go(func() {
			seen := map[capture.Key]capture.Claim{}
			for n := 0; ctx.Err() == nil; n++ {
				k := key(rng.IntN(2))
				// The call outlives the test's order to stop: what was asked has to be written down.
				if rng.IntN(2) == 0 {
					if got, err := f.Claim(t.Context(), store, client, k); err == nil {
						seen[k] = got
					}
				} else {
					to := capture.Claim{Epoch: seen[k].Epoch + 1, Holder: capture.Holder(fmt.Sprintf("%d-%d", client, n))}
					if done, err := f.Bump(t.Context(), store, client, k, seen[k], to); err == nil && done {
						seen[k] = to
					}
				}
				time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			}
		})
	}
	return f
}

// Members are killed, paused and cut off while agents read and bump: every answer is one that
// a single store could have given, and the cluster comes back from each.
func TestNoFaultOfTheClusterBreaksTheOrderOfEpochs(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 3, unsynced...))
	f := newTraffic(t, c)
	all := opened(t, hasty(c.Members...))
	leader, others := c.Leader(t)
	for _, fault := range []struct {
		what        string
		begin, over func()
	}{
		{"a follower is killed", others[0].Kill, func() { others[0].Start(t) }},
		{"the leader is killed", func() { leader, others = c.Leader(t); leader.Kill() }, func() { leader.Start(t) }},
		{"the leader is paused", func() { leader, others = c.Leader(t); leader.Pause(t) }, func() { leader.Resume(t) }},
		{"the leader is cut off from the others", func() { leader, others = c.Leader(t); c.Isolate(leader) }, c.Join},
		{"clients are cut off from two members", func() { cutOff(false, true, c.Members[:2]...) }, func() { cutOff(false, false, c.Members[:2]...) }},
		{"a member does not answer clients", func() { cutOff(true, false, c.Members[0]) }, func() { cutOff(false, false, c.Members[0]) }},
	} {
		t.Log(fault.what)
		fault.begin()
		for range 3 { // what needs a majority goes on without the rest
			moves(t, all, key(7), "a")
		}
		fault.over()
		for _, m := range c.Members { // and so does each that was away
			s := opened(t, hasty(m))
			moves(t, s, key(7), capture.Holder(m.Name))
			must(t, s.Close())
		}
	}
	f.stop()
	f.wg.Wait()
	f.Check(t)
}

// The leader is paused, another one takes its place, and a client that has asked the old one
// gets its answer when that goes on: it is not the old one (case c05, c15).
func TestALeaderThatWasPausedDoesNotAnswerWithThePast(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 3, unsynced...))
	leader, others := c.Leader(t)
	patient := hasty(leader)
	patient.Timeout = patience
	slow, fast, k := opened(t, patient), opened(t, hasty(others...)), key(1)
	was := moves(t, slow, k, "a")
	leader.Pause(t)
	type answer struct {
		claim capture.Claim
		err   error
	}
	read, bumped := make(chan answer, 1), make(chan answer, 1)
	is := moves(t, fast, k, "b")
	go func() {
		got, err := slow.Claim(t.Context(), k)
		read <- answer{got, err}
	}()
	go func() {
		done, err := slow.Bump(t.Context(), []capture.Bump{{Key: k, From: was, To: capture.Claim{Epoch: was.Epoch + 1, Holder: "z"}}})
		if done[0] {
			err = errors.New("the bump from what is past was done")
		}
		bumped <- answer{err: err}
	}()
	select {
	case got := <-read:
		t.Fatalf("a paused member answers %+v", got)
	case <-time.After(100 * time.Millisecond): // so that the question may get there first
	}
	leader.Resume(t)
	if got := <-read; got.err != nil || got.claim != is {
		t.Errorf("the claim is %s, %v; it has been %s since before the question", got.claim, got.err, is)
	}
	if got := <-bumped; got.err != nil {
		t.Error(got.err)
	}
}

// Two members of three are away: nobody bumps and nobody is told anything, every call ends in
// its time and says what to do; then one comes back, and all goes on (case c15).
func TestWithoutAMajorityNothingIsBumpedAndNothingHangs(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 3, unsynced...))
	s, k := opened(t, hasty(c.Members...)), key(1)
	was := moves(t, s, k, "a")
	at, err := s.Changes(t.Context(), claims.Revision{})
	must(t, err)
	c.Members[0].Kill()
	c.Members[1].Kill()
	// The members stay away until all calls have returned, so that they do is the proof.
	home := capture.Home{Pool: "blue", Addr: k.Address}
	for what, call := range map[string]func(context.Context) error{
		"Claim":   func(ctx context.Context) error { _, err := s.Claim(ctx, k); return err },
		"Changes": func(ctx context.Context) error { _, err := s.Changes(ctx, at.Revision); return err },
		"Wait":    func(ctx context.Context) error { return s.Wait(ctx, at.Revision) },
		"Renew":   func(ctx context.Context) error { _, err := s.Renew(ctx, "a", time.Second); return err },
		"Drain":   func(ctx context.Context) error { return s.Drain(ctx, "a", true) },
		"Own":     func(ctx context.Context) error { _, err := s.Own(ctx, home, capture.Location{Site: "x"}); return err },
		"Release": func(ctx context.Context) error { return s.Release(ctx, "a") },
		"Bump": func(ctx context.Context) error {
			done, err := s.Bump(ctx, []capture.Bump{{Key: k, From: was, To: capture.Claim{Epoch: was.Epoch + 1, Holder: "b"}}})
			if done[0] {
				return nil
			}
			return err
		},
	} {
		err := call(t.Context())
		if err == nil {
			t.Fatalf("%s succeeds", what)
		}
		for _, part := range []string{s.options.Endpoints[0], "/tasuki/", "most of its members are up"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s does not say %q: %v", what, part, err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := call(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with a deadline: %v", what, err)
		}
		cancel()
	}
	c.Members[0].Start(t)
	if now := moves(t, s, k, "b"); now.Epoch != was.Epoch+1 {
		t.Errorf("after %s, without a majority meanwhile, it goes on with %s", was, now)
	}
}
