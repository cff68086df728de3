package etcd

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/claims"
)

func alive(t testing.TB, s *Store, node string) (bool, error) {
	c, err := s.Changes(t.Context(), claims.Revision{})
	return slices.Contains(c.Alive, node), err
}

// A node renews through whatever happens to the cluster, and then no more. Whenever another
// host sees it dead, its own deadline has passed (case c15).
func TestNobodySeesANodeDeadBeforeItsOwnDeadline(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 3, unsynced...))
	holder, other := opened(t, hasty(c.Members...)), opened(t, hasty(c.Members...))
	leader, _ := c.Leader(t)
	for _, round := range []struct {
		what          string
		renewals      int
		begin, middle func() // before the renewals, and after
		over          func()
	}{
		{"nothing", 3, func() {}, func() {}, func() {}},
		{"the leader is killed after the last renewal", 3, func() {}, func() { leader.Kill() }, func() { leader.Start(t) }},
		{"the leader is cut off during the renewals", 3, func() { leader, _ = c.Leader(t); c.Isolate(leader) }, func() {}, c.Join},
		// To a leader that is paused for so long, the lease has ended.
		{"the leader is paused during the renewals", 12, func() { leader, _ = c.Leader(t); leader.Pause(t) }, func() { leader.Resume(t) }, func() {}},
	} {
		t.Log(round.what)
		round.begin()
		var deadline time.Time
		for renewed := 0; renewed < round.renewals; time.Sleep(100 * time.Millisecond) {
			end, err := holder.Renew(t.Context(), "a", time.Second)
			if err != nil {
				continue // nothing is promised
			}
			if renewed++; end.Before(deadline) {
				t.Errorf("the deadline goes back by %s", deadline.Sub(end))
			}
			deadline = end
		}
		round.middle()
		eventually(t, "a being dead", func() bool {
			lives, err := alive(t, other, "a")
			if early := time.Until(deadline); err == nil && !lives && early > 0 {
				t.Errorf("a is dead %s before its deadline", early)
			}
			return err == nil && !lives
		})
		round.over()
		end := renewed(t, holder, "a", time.Second)
		if !end.After(deadline) {
			t.Errorf("a lease that begins anew ends at %s, the one before it at %s", end, deadline)
		}
	}
}

// A leader is deposed, and does not know what was renewed since: when it has the lease that it
// looked after be revoked, as one does that was paused, nobody notices.
func TestADeposedLeaderEndsNoLeaseThatWasRenewedSince(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 3, unsynced...))
	holder, other := opened(t, hasty(c.Members...)), opened(t, hasty(c.Members...))
	renews := func() (clientv3.LeaseID, uint64) {
		renewed(t, holder, "a", time.Minute)
		r, err := c.Admin.Get(t.Context(), "/tasuki/alive/a")
		must(t, err)
		return clientv3.LeaseID(r.Kvs[0].Lease), r.Header.RaftTerm
	}
	lease, term := renews()
	if again, now := renews(); again != lease && now == term {
		t.Errorf("the lease goes from %x to %x under one leader", lease, again)
	}
	at := changes(t, other, claims.Revision{})
	lease, _ = renews()
	eventually(t, "another leader", func() bool {
		leader, others := c.Leader(t)
		c.Admin.SetEndpoints(leader.Client)
		_, err := c.Admin.MoveLeader(t.Context(), others[0].ID)
		return err == nil
	})
	renews()
	eventually(t, "the old lease being revoked", func() bool {
		_, err := c.Admin.Revoke(t.Context(), lease)
		return err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound)
	})
	unnoticed(t, other, at)
}

// unnoticed expects that nothing has changed, and that node a is alive. Whatever a store has told
// it may tell anew.
func unnoticed(t testing.TB, s *Store, at claims.Changes) {
	t.Helper()
	got := changes(t, s, at.Revision)
	if got.Revision != at.Revision && !got.Reset || !slices.Equal(got.Alive, []string{"a"}) {
		t.Errorf("after revision %v, changes are %+v", at.Revision, got)
	}
}

// An agent is stopped and started again within its TTL: nobody notices. When it says that it
// goes for good, everybody does at once.
func TestAnAgentThatIsStartedAgainHasBeenAliveAllTheWhile(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 1, unsynced...))
	other := opened(t, hasty(c.Members...))
	first := opened(t, hasty(c.Members...))
	renewed(t, first, "a", time.Minute)
	at := changes(t, other, claims.Revision{})
	must(t, first.Close())
	second := opened(t, hasty(c.Members...))
	for range 2 {
		renewed(t, second, "a", time.Minute)
	}
	unnoticed(t, other, at)
	// Its key is gone, or its configuration is another: the next renewal sees to it.
	_, err := c.Admin.Delete(t.Context(), "/tasuki/alive/a")
	must(t, err)
	for _, ttl := range []time.Duration{time.Minute, 90 * time.Second} {
		renewed(t, second, "a", ttl)
		if !slices.Contains(changes(t, other, claims.Revision{}).Alive, "a") {
			t.Errorf("with a TTL of %s, it is not alive", ttl)
		}
	}
	for range 2 {
		answered(t, func() (any, error) { return nil, second.Release(t.Context(), "a") })
		if slices.Contains(changes(t, other, claims.Revision{}).Alive, "a") {
			t.Error("released, and alive")
		}
	}
}

// Two agents have the same name by mistake: the second one does not renew the lease of the first,
// and is told what to do; when the first has died, it goes on after the lease, not before.
func TestOneAgentRenewsTheLeaseOfANode(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 1, unsynced...))
	agent := func(name string) *Store {
		o := hasty(c.Members...)
		o.Agent = name
		return opened(t, o)
	}
	first, second := agent("one"), agent("two")
	renewed(t, first, "a", time.Minute)
	refused := func(s *Store, ttl time.Duration) (err error) {
		t.Helper()
		eventually(t, "a refusal", func() bool {
			if _, err = s.Renew(t.Context(), "a", ttl); err == nil {
				t.Fatalf("another agent renews for %s", ttl)
			}
			return errors.Is(err, claims.ErrRival)
		})
		return err
	}
	refused(second, time.Minute)
	err := refused(second, time.Second)
	for _, part := range []string{"node a", "prefix /tasuki/", "one", "stop one of the two"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	renewed(t, second, "b", time.Minute)
	must(t, first.Close())
	restarted := agent("one")
	deadline := renewed(t, restarted, "a", time.Second)
	eventually(t, "the second one being alive", func() bool {
		_, err := second.Renew(t.Context(), "a", time.Minute)
		if early := time.Until(deadline); err == nil && early > 0 {
			t.Errorf("the second one renews %s before the first one's deadline", early)
		}
		return err == nil
	})
	refused(restarted, time.Second) // the first one comes back
}

// A cluster grants no less than its own minimum: the deadline is that of what was granted.
func TestADeadlineIsThatOfTheTTLThatWasGranted(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 1, "--unsafe-no-fsync", "--heartbeat-interval=100", "--election-timeout=3000"))
	s := opened(t, hasty(c.Members...))
	for range 2 { // a grant, and a renewal
		before := time.Now()
		end := renewed(t, s, "a", 100*time.Millisecond)
		if least := before.Add(5 * time.Second); end.Before(least) {
			t.Errorf("the deadline is %s before the one of the five seconds that were granted", least.Sub(end))
		}
	}
}
