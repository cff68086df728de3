package etcd

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// pool is one of two nodes, and of the addresses of two keys.
var pool = capture.Pool{
	Name: "blue", Prefix: netip.MustParsePrefix("10.0.0.0/16"),
	Addresses: []capture.Address{{Addr: key(1).Address}, {Addr: key(2).Address}},
	Members:   []capture.Member{{Node: "a", Role: capture.RoleCloud, Group: "g", Capture: capture.Capture{Method: capture.SecondaryIP, ProviderRef: "c", NIC: "eni-a"}}},
}

// node is as much of an agent as learns of claims and raises epochs.
type node struct {
	view     *capture.View
	revision claims.Revision
}

func (n *node) learn(t *testing.T, s *Store, all ...capture.Key) claims.Changes {
	t.Helper()
	c := changes(t, s, n.revision)
	for _, k := range all {
		if got, ok := c.Claims[k]; ok || c.Reset {
			n.view.Learn(k, got, time.Now())
		}
	}
	n.revision = c.Revision
	return c
}

// waiting waits for a change as an agent does, also while the cluster is away.
func waiting(t *testing.T, s *Store, since claims.Revision) <-chan error {
	returned := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	go func() {
		for {
			err := s.Wait(ctx, since)
			if err == nil || ctx.Err() != nil {
				returned <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return returned
}

// A cluster is put back to what it was some epochs ago, by two ways that give it the same id
// and the same members as before, and by the time that an agent reads again its revisions have
// come further than they ever were. The agent is told everything anew, and takes each line up
// above what it knows; what was the claim before is not bumped (case c24).
func TestAnOlderSnapshotInPlaceOfTheClusterIsToldAnew(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		save, restore func(t *testing.T, c *cluster, dir string)
	}{
		"a snapshot restored by etcdutl": {
			func(t *testing.T, c *cluster, dir string) { c.Snapshot(t, filepath.Join(dir, "snapshot.db")) },
			func(t *testing.T, c *cluster, dir string) { c.Restore(t, filepath.Join(dir, "snapshot.db")) },
		},
		"copies of the members' data": {copyAway, copyBack},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cluster, dir, old, young := started(t, newCluster(t, 3, unsynced...)), t.TempDir(), key(1), key(2)
			s := opened(t, hasty(cluster.Members...))
			var saved, was, grew capture.Claim
			for range 3 {
				saved = moves(t, s, old, "a")
			}
			c.save(t, cluster, dir)
			for range 2 {
				was, grew = moves(t, s, old, "a"), moves(t, s, young, "a")
			}
			drains(t, s, "b", true)
			agent := node{view: capture.NewView()}
			before := agent.learn(t, s, old, young).Revision
			waits := waiting(t, s, before)
			for _, m := range cluster.Members {
				m.Kill()
			}
			c.restore(t, cluster, dir)
			cutOff(false, true, cluster.Members...) // the agent sees nothing of it yet
			for _, m := range cluster.Members {
				m.Start(t)
			}
			started(t, cluster)
			for at := int64(0); at <= int64(before.N)+10; {
				r, err := cluster.Admin.Put(t.Context(), "/another/application", "x")
				must(t, err)
				at = r.Header.Revision
			}
			cutOff(false, false, cluster.Members...)
			must(t, <-waits)
			got := agent.learn(t, s, old, young)
			if !got.Reset || len(got.Claims) != 1 || got.Claims[old] != saved || len(got.Drained) > 0 {
				t.Fatalf("after the restore, changes are %+v", got)
			}
			bumps := func(all ...capture.Bump) []bool {
				return answered(t, func() ([]bool, error) { return s.Bump(t.Context(), all) })
			}
			if bumps(capture.Bump{Key: old, From: was, To: capture.Claim{Epoch: was.Epoch + 1, Holder: "b"}})[0] {
				t.Error("a claim was bumped that is not there any more")
			}
			d := capture.Decide(&capture.Snapshot{
				Node: "a", Pools: []capture.Pool{pool}, Providers: map[string]string{"c": "aws"}, View: agent.view,
			}, time.Now())
			bumps(d.Plan.Bumps...) // perhaps more than once
			for _, b := range d.Plan.Bumps {
				is := answered(t, func() (capture.Claim, error) { return s.Claim(t.Context(), b.Key) })
				if is != b.To || b.Key.Address.IsValid() && b.Why != capture.CauseReseed {
					t.Errorf("%s: from %s to %s because of %s, and it is at %s", b.Key, b.From, b.To, b.Why, is)
				}
			}
			for k, above := range map[capture.Key]capture.Claim{old: was, young: grew} {
				if is := answered(t, func() (capture.Claim, error) { return s.Claim(t.Context(), k) }); is.Epoch <= above.Epoch {
					t.Errorf("%s was at %s before the restore, and is at %s", k, above, is)
				}
			}
			told := map[capture.Key]capture.Claim{}
			eventually(t, "changes that go on from the last ones", func() bool { // a connection may end late
				next := agent.learn(t, s, old, young)
				maps.Copy(told, next.Claims)
				return !next.Reset
			})
			if len(told) < 2 {
				t.Errorf("and the next changes are %+v", told)
			}
		})
	}
}

func copyAway(t *testing.T, c *cluster, dir string) {
	for _, m := range c.Members {
		m.Kill()
	}
	for _, m := range c.Members {
		must(t, os.CopyFS(filepath.Join(dir, m.Name), os.DirFS(m.Dir)))
	}
	for _, m := range c.Members {
		m.Start(t)
	}
	started(t, c)
}

func copyBack(t *testing.T, c *cluster, dir string) {
	for _, m := range c.Members {
		must(t, os.RemoveAll(m.Dir))
		must(t, os.CopyFS(m.Dir, os.DirFS(filepath.Join(dir, m.Name))))
		must(t, os.Chmod(m.Dir, 0o700))
	}
}

// The history that an agent has not read yet is compacted, under a watch that is cut off and
// under none: what it is told is complete.
func TestCompactionHidesNothing(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 1, unsynced...))
	slow := opened(t, hasty(c.Members...))
	direct := hasty()
	direct.Endpoints = []string{c.Members[0].Client}
	fast := opened(t, direct)
	moves(t, slow, key(1), "a")
	drains(t, slow, "a", true)
	at := changes(t, slow, claims.Revision{})
	var one, two capture.Claim
	behind := func() {
		one, two = moves(t, fast, key(1), "b"), moves(t, fast, key(2), "b")
		drains(t, fast, "a", false)
		now := changes(t, fast, claims.Revision{})
		_, err := c.Admin.Compact(t.Context(), int64(now.Revision.N))
		must(t, err)
	}
	behind()
	must(t, <-waiting(t, slow, at.Revision))
	got := changes(t, slow, at.Revision)
	if got.Claims[key(1)] != one || got.Claims[key(2)] != two || len(got.Drained) > 0 {
		t.Errorf("without a watch, changes are %+v", got)
	}
	waits := waiting(t, slow, got.Revision)
	eventually(t, "a watch", func() bool { return slow.running() != nil })
	cutOff(false, true, c.Members...)
	behind()
	cutOff(false, false, c.Members...)
	must(t, <-waits)
	if got = changes(t, slow, got.Revision); !got.Reset || got.Claims[key(1)] != one || got.Claims[key(2)] != two {
		t.Errorf("under a watch, changes are %+v", got)
	}
}

// Somebody deletes a claim with etcdctl, or writes what is none: the first is told, the second
// is an error that names the key, and no epoch is guessed.
func TestWhatIsDoneToClaimsByHandIsNoticed(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 1, unsynced...))
	s, k := opened(t, hasty(c.Members...)), key(1)
	moves(t, s, k, "a")
	moves(t, s, key(2), "a")
	at := changes(t, s, claims.Revision{})
	_, err := c.Admin.Delete(t.Context(), s.claimKey(k))
	must(t, err)
	moves(t, s, key(3), "a")
	must(t, <-waiting(t, s, at.Revision))
	got := changes(t, s, at.Revision)
	if !got.Reset || len(got.Claims) != 2 || got.Claims[k].Epoch > 0 {
		t.Errorf("changes are %+v", got)
	}
	for _, bad := range []string{"", "3", `{"epoch":0,"holder":"a"}`, `{"epoch":-1}`, `{"epoch":"x"}`} {
		_, err = c.Admin.Put(t.Context(), s.claimKey(k), bad)
		must(t, err)
		for what, call := range map[string]func() error{
			"Claim":   func() error { _, err := s.Claim(t.Context(), k); return err },
			"Changes": func() error { _, err := s.Changes(t.Context(), got.Revision); return err },
			"Bump": func() error {
				_, err := s.Bump(t.Context(), []capture.Bump{{Key: k, To: capture.Claim{Epoch: 1, Holder: "b"}}})
				return err
			},
		} {
			eventually(t, what+" refusing "+bad, func() bool {
				err := call()
				return err != nil && strings.Contains(err.Error(), s.claimKey(k)) && strings.Contains(err.Error(), "correct it with etcdctl")
			})
		}
	}
}
