package trial

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// film is a sequence of sightings, a second apart.
type film struct {
	l    *ledger
	told []Kind
	at   time.Time
}

func newFilm(replicas int) *film {
	f := &film{at: noon}
	f.l = newLedger(Subject{NodePool: "web", Replicas: replicas}, func(h Happening) { f.told = append(f.told, h.Kind) })
	return f
}

func (f *film) see(all ...seen) {
	for _, s := range all {
		f.at = f.at.Add(time.Second)
		f.l.observe(sighting{seen: s, at: f.at})
	}
}

func (f *film) lose(s seen) {
	f.at = f.at.Add(time.Second)
	f.l.observe(sighting{seen: s, at: f.at, gone: true})
}

func (f *film) account() Account {
	all := f.l.accounts()
	return all[len(all)-1]
}

func pool(annotations map[string]string) seen {
	return seen{role: rolePool, name: "web", annotations: annotations}
}

func drainNext(claim string) seen {
	return pool(map[string]string{rotation.AnnotationActive: claim, rotation.AnnotationActiveState: rotation.StateDraining})
}

func anchored(claim string) seen { return pool(map[string]string{rotation.AnnotationActive: claim}) }

func claim(name, node string) seen { return seen{role: roleClaim, name: name, node: node} }

func node(name string) seen { return seen{role: roleNode, name: name, ready: true} }

func pod(name, node string, ready bool) seen {
	return seen{role: rolePod, name: name, node: node, ready: ready}
}

func leaving(s seen) seen {
	s.leaving = true
	return s
}

func placeholder(node string, running bool) seen {
	return seen{role: rolePlaceholder, name: "p", node: node, running: running,
		annotations: map[string]string{rotation.AnnotationSurgeFor: "web-a"}}
}

// begin shows two pods on node-a, and a rotation of it that has the capacity on node-b.
func (f *film) begin() {
	f.see(pool(nil), claim("web-a", "node-a"), node("node-a"), pod("1", "node-a", true), pod("2", "node-a", true))
	f.see(anchored("web-a"), placeholder("", false), claim("web-b", ""), claim("web-b", "node-b"), node("node-b"),
		placeholder("node-b", false), placeholder("node-b", true))
}

// drain moves both pods over, one by one, and ends the rotation.
func (f *film) drain() {
	f.see(drainNext("web-a"))
	f.lose(placeholder("node-b", true))
	f.see(leaving(claim("web-a", "node-a")))
	for i := 1; i <= 2; i++ {
		old, young := fmt.Sprint(i), fmt.Sprint(i+2)
		f.see(leaving(pod(old, "node-a", true)), pod(young, "", false), pod(young, "node-b", false))
		f.lose(leaving(pod(old, "node-a", true)))
		f.see(pod(young, "node-b", true))
	}
	f.lose(leaving(node("node-a")))
	f.lose(leaving(claim("web-a", "node-a")))
	f.see(pool(map[string]string{rotation.AnnotationLastRotation: "now"}))
}

func TestLedgerOfARotation(t *testing.T) {
	f := newFilm(2)
	f.begin()
	f.drain()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	want := Account{
		Replicas: 2, Claim: "web-a", OldNode: "node-a", NewNode: "node-b", Outcome: Success,
		Started: at(6), Capacity: at(12), Deleted: at(15), Drained: at(27), Ended: at(28),
		SurgeWait: 6 * time.Second, Drain: 12 * time.Second, Total: 22 * time.Second,
		ClaimsCreated: []string{"web-b"}, Evicted: 2, MostNotReady: 1,
		LongestPending: time.Second, PendingPod: "4",
	}
	if diff := cmp.Diff(want, f.account()); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	story := []Kind{
		ClaimLaunched, NodeAppeared, NodeReady, PodCreated, PodBound, PodReady, PodCreated, PodBound, PodReady,
		RotationStarted, PlaceholderCreated, ClaimLaunched, NodeAppeared, NodeReady, PlaceholderBound, CapacityReady,
		PlaceholderGone, ClaimDeleted,
		PodLeaving, PodCreated, PodBound, PodReady, PodLeaving, PodCreated, PodBound, PodReady,
		NodeGone, ClaimGone, RotationEnded,
	}
	if diff := cmp.Diff(story, f.told); diff != "" {
		t.Errorf("happenings (-want +got):\n%s", diff)
	}
}

func TestLedgerNoticesTheDrainBeforeTheCapacity(t *testing.T) {
	for _, c := range []struct {
		name string
		film func(*film)
		want []string
	}{
		{"in order", func(f *film) {
			f.begin()
			f.drain()
		}, nil},
		{"no placeholder yet", func(f *film) {
			f.see(claim("web-a", "node-a"), node("node-a"), anchored("web-a"), leaving(claim("web-a", "node-a")))
		}, []string{"NodeClaim web-a was deleted before a placeholder ran on another Ready node"}},
		{"placeholder on the candidate itself", func(f *film) {
			f.see(claim("web-a", "node-a"), node("node-a"), anchored("web-a"), placeholder("node-a", true), drainNext("web-a"))
			f.lose(placeholder("node-a", true))
			f.see(leaving(claim("web-a", "node-a")))
		}, []string{"NodeClaim web-a was deleted before a placeholder ran on another Ready node"}},
		{"host not Ready", func(f *film) {
			f.see(claim("web-a", "node-a"), node("node-a"), anchored("web-a"), seen{role: roleNode, name: "node-b"}, placeholder("node-b", true), drainNext("web-a"))
			f.lose(placeholder("node-b", true))
			f.see(leaving(claim("web-a", "node-a")))
		}, []string{"NodeClaim web-a was deleted before a placeholder ran on another Ready node"}},
		{"placeholder lost, made anew and not yet bound", func(f *film) {
			f.begin()
			f.lose(placeholder("node-b", true))
			f.see(placeholder("", false), leaving(claim("web-a", "node-a")))
		}, []string{
			"NodeClaim web-a was deleted before a placeholder ran on another Ready node",
			"NodeClaim web-a was deleted before placeholder p was gone",
		}},
		{"placeholder kept", func(f *film) {
			f.begin()
			f.see(leaving(claim("web-a", "node-a")))
		}, []string{"NodeClaim web-a was deleted before placeholder p was gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFilm(2)
			c.film(f)
			if diff := cmp.Diff(c.want, f.account().Disorder); diff != "" {
				t.Errorf("disorder (-want +got):\n%s", diff)
			}
		})
	}
}

// A new node may still carry a NoExecute taint in somebody's cache, and so lose the
// placeholder as soon as it runs.
func TestLedgerOfALostPlaceholder(t *testing.T) {
	f := newFilm(2)
	f.begin()
	f.lose(placeholder("node-b", true))
	if a := f.account(); a.PlaceholdersLost != 1 || !a.Capacity.IsZero() || a.NewNode != "" {
		t.Errorf("account = %+v, want one placeholder lost, and no capacity proven", a)
	}
	f.see(placeholder("", false), placeholder("node-b", true))
	f.drain()
	if a := f.account(); a.PlaceholdersLost != 1 || a.NewNode != "node-b" || a.Disorder != nil {
		t.Errorf("account = %+v, want the capacity proven anew on node-b, in order", a)
	}
	if n := len(f.told) - 1; f.told[16] != PlaceholderLost || f.told[n] != RotationEnded {
		t.Errorf("happenings = %v, want PlaceholderLost after the capacity", f.told)
	}
}

func TestLedgerNoticesPodsThatWaitForANode(t *testing.T) {
	f := newFilm(2)
	f.begin()
	f.see(leaving(pod("1", "node-a", true)), pod("3", "", false), pod("4", "", false), claim("web-c", "node-c"), node("node-c"), pod("3", "node-c", false))
	a := f.account()
	if diff := cmp.Diff([]string{"pod 3 was unbound for 4s until node node-c appeared"}, a.Waited); diff != "" {
		t.Errorf("waited (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"4"}, a.Unbound); diff != "" {
		t.Errorf("unbound (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web-b", "web-c"}, a.ClaimsCreated); diff != "" {
		t.Errorf("claims created (-want +got):\n%s", diff)
	}
}

func TestLedgerCountsPodsAwayAtOnce(t *testing.T) {
	f := newFilm(2)
	f.begin()
	f.see(leaving(pod("1", "node-a", true)), leaving(pod("2", "node-a", true)))
	if got := f.account().MostNotReady; got != 2 {
		t.Errorf("most not Ready = %d, want 2", got)
	}
}

func TestLedgerTellsOutcomesApart(t *testing.T) {
	for _, c := range []struct {
		end  map[string]string
		want Outcome
	}{
		{map[string]string{rotation.AnnotationLastRotation: "now"}, Success},
		{map[string]string{rotation.AnnotationLastFailure: "now"}, Failure},
		{nil, Abandoned},
	} {
		f := newFilm(2)
		f.begin()
		f.see(pool(c.end))
		if got := f.account().Outcome; got != c.want {
			t.Errorf("outcome after %v = %s, want %s", c.end, got, c.want)
		}
	}
}

func TestLedgerKeepsTheAccountOfEveryRotation(t *testing.T) {
	f := newFilm(2)
	f.begin()
	f.drain()
	f.see(pool(map[string]string{rotation.AnnotationLastRotation: "now", rotation.AnnotationActive: "web-b"}))
	all := f.l.accounts()
	if len(all) != 2 || all[0].Claim != "web-a" || all[0].Outcome != Success || all[1].Claim != "web-b" || all[1].OldNode != "node-b" {
		t.Errorf("accounts = %+v, want that of web-a, ended, then that of web-b on node-b", all)
	}
}

func TestScene(t *testing.T) {
	f := newFilm(2)
	f.begin()
	f.see(leaving(pod("1", "node-a", true)), pod("3", "", false))
	want := Scene{
		Nodes: []SceneNode{
			{Name: "node-a", Claim: "web-a", Ready: true, Pods: []ScenePod{{Name: "1", State: PodDeparts}, {Name: "2", State: PodServing}}},
			{Name: "node-b", Claim: "web-b", Ready: true, Pods: []ScenePod{{Name: "p", State: PodServing, Placeholder: true}}},
		},
		Unbound: []ScenePod{{Name: "3", State: PodUnbound}}, Ready: 1, Replicas: 2,
	}
	if diff := cmp.Diff(want, f.l.scene()); diff != "" {
		t.Errorf("scene (-want +got):\n%s", diff)
	}
}
