package etcd

import (
	"context"
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
	c, err := s.Changes(t.Context(), n.revision)
	must(t, err)
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
			for range 3 {
				moves(t, s, old, "a")
			}
			c.save(t, cluster, dir)
			for range 2 {
				moves(t, s, old, "a")
				moves(t, s, young, "a")
			}
			must(t, s.Drain(t.Context(), "b", true))
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
			if !got.Reset || len(got.Claims) != 1 || got.Claims[old].Epoch != 3 || len(got.Drained) > 0 {
				t.Fatalf("after the restore, changes are %+v", got)
			}
			done, err := s.Bump(t.Context(), []capture.Bump{{Key: old, From: capture.Claim{Epoch: 5, Holder: "a"}, To: capture.Claim{Epoch: 6, Holder: "b"}}})
			if must(t, err); done[0] {
				t.Error("a claim was bumped that is not there any more")
			}
			d := capture.Decide(&capture.Snapshot{
				Node: "a", Pools: []capture.Pool{pool}, Providers: map[string]string{"c": "aws"}, View: agent.view,
			}, time.Now())
			done, err = s.Bump(t.Context(), d.Plan.Bumps)
			must(t, err)
			for i, b := range d.Plan.Bumps {
				if !done[i] || b.Key.Address.IsValid() && b.Why != capture.CauseReseed {
					t.Errorf("%s: from %s to %s because of %s: done %t", b.Key, b.From, b.To, b.Why, done[i])
				}
			}
			for k, above := range map[capture.Key]capture.Epoch{old: 5, young: 2} {
				if is, err := s.Claim(t.Context(), k); err != nil || is.Epoch <= above {
					t.Errorf("%s was at epoch %d before the restore, and is at %s, %v", k, above, is, err)
				}
			}
			if next := agent.learn(t, s, old, young); next.Reset || len(next.Claims) < 2 {
				t.Errorf("and the next changes are %+v", next)
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
	must(t, slow.Drain(t.Context(), "a", true))
	at, err := slow.Changes(t.Context(), claims.Revision{})
	must(t, err)
	behind := func() {
		moves(t, fast, key(1), "b")
		moves(t, fast, key(2), "b")
		must(t, fast.Drain(t.Context(), "a", false))
		now, err := fast.Changes(t.Context(), claims.Revision{})
		must(t, err)
		_, err = c.Admin.Compact(t.Context(), int64(now.Revision.N))
		must(t, err)
	}
	behind()
	must(t, slow.Wait(t.Context(), at.Revision))
	got, err := slow.Changes(t.Context(), at.Revision)
	must(t, err)
	if got.Reset || got.Claims[key(1)].Epoch != 2 || got.Claims[key(2)].Epoch != 1 || len(got.Drained) > 0 {
		t.Errorf("without a watch, changes are %+v", got)
	}
	waits := waiting(t, slow, got.Revision)
	eventually(t, "a watch", func() bool { return slow.running() != nil })
	cutOff(false, true, c.Members...)
	behind()
	cutOff(false, false, c.Members...)
	must(t, <-waits)
	if got, err = slow.Changes(t.Context(), got.Revision); err != nil || !got.Reset || got.Claims[key(1)].Epoch != 3 || got.Claims[key(2)].Epoch != 2 {
		t.Errorf("under a watch, changes are %+v, %v", got, err)
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
	at, err := s.Changes(t.Context(), claims.Revision{})
	must(t, err)
	_, err = c.Admin.Delete(t.Context(), s.claimKey(k))
	must(t, err)
	moves(t, s, key(3), "a")
	must(t, s.Wait(t.Context(), at.Revision))
	got, err := s.Changes(t.Context(), at.Revision)
	if must(t, err); !got.Reset || len(got.Claims) != 2 || got.Claims[k].Epoch > 0 {
		t.Errorf("changes are %+v", got)
	}
	for _, bad := range []string{"", "3", `{"epoch":0,"holder":"a"}`, `{"epoch":-1}`, `{"epoch":"x"}`} {
		_, err = c.Admin.Put(t.Context(), s.claimKey(k), bad)
		must(t, err)
		_, err1 := s.Claim(t.Context(), k)
		_, err2 := s.Changes(t.Context(), got.Revision)
		_, err3 := s.Bump(t.Context(), []capture.Bump{{Key: k, To: capture.Claim{Epoch: 1, Holder: "b"}}})
		for _, err := range []error{err1, err2, err3} {
			if err == nil || !strings.Contains(err.Error(), s.claimKey(k)) || !strings.Contains(err.Error(), "correct it with etcdctl") {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
}
