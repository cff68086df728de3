package reference

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// handover is two nodes that share claims, and a provider that does what it is asked. What
// happens to the address is drawn, a row each.
type handover struct {
	*picture
	now    time.Time
	pool   capture.Pool
	absent capture.Absent
	claims map[capture.Key]capture.Claim
	views  map[string]*capture.View
	last   map[string]capture.Action // what each node has done last about the address
	y      int
	story  []string
}

// Where the columns stand.
var columns = map[string]int{"router-a": 110, "claims store": 330, "router-b": 550, "provider": 790}

// row draws an arrow from one column to another.
func (h *handover) row(from, to, class, label string) {
	x, end := columns[from], columns[to]
	h.arrow(x, end, h.y, class)
	h.text((x+end)/2, h.y-7, "small mid", "%s", label)
	h.story = append(h.story, from+" to "+to+": "+label)
	h.y += 40
}

func (h *handover) note(format string, args ...any) {
	h.y += 6
	h.rect(20, h.y-20, 860, 26, "panel")
	h.text(30, h.y-2, "strong", format, args...)
	h.story = append(h.story, fmt.Sprintf(format, args...))
	h.y += 44
}

// settle has the nodes decide and act, in turn, until nothing is left to do.
func (h *handover) settle(t *testing.T) {
	for range 100 {
		calm := true
		for _, node := range []string{"router-a", "router-b"} {
			view := h.views[node]
			d := capture.Decide(&capture.Snapshot{
				Node: node, Pools: []capture.Pool{h.pool}, Providers: map[string]string{"cloud": "aws"}, Absent: h.absent, View: view,
				Policy: capture.Policy{
					Enabled: true, Providers: []string{"aws"}, ProviderRefs: []string{"cloud"}, Verbs: capture.Verbs(), MaxPerRun: 10,
					CIDRs: []netip.Prefix{h.pool.Prefix},
				},
			}, h.now)
			calm = calm && d.Plan.Empty() && len(view.Open()) == 0
			for _, b := range d.Plan.Bumps {
				h.claims[b.Key] = b.To
				if b.Key.Address.IsValid() {
					h.row(node, "claims store", "go", fmt.Sprintf("epoch %d: %s", b.To.Epoch, b.To.Holder))
				}
				for _, v := range h.views {
					v.Learn(b.Key, b.To, h.now)
				}
			}
			for _, s := range d.Plan.Skips {
				s.Action.State = capture.Skipped
				view.Record(s.Action)
			}
			for _, drop := range d.Plan.Drops {
				view.Unmark(drop.Marker)
			}
			for _, m := range d.Plan.Marks {
				view.Mark(m.Marker)
				view.Record(m.Action)
			}
			for _, a := range d.Plan.Imports {
				view.Record(a)
			}
			for _, a := range d.Plan.Admits {
				a.State, a.Approver = capture.Approved, capture.ByPolicy
				view.Record(a)
			}
			for _, a := range d.Plan.Runs {
				if stale := capture.Gate(h.claims[a.Key], a.Token); stale != "" {
					t.Fatalf("%s is planned, and %s", a.ID(), stale)
				}
				a.State, a.Attempts, a.Updated = capture.Succeeded, a.Attempts+1, h.now
				view.Record(a)
				if a.Key.Address.IsValid() {
					how := ""
					if a.Reassign {
						how = ", from whoever has it"
					}
					h.row(node, "provider", "go", fmt.Sprintf("%s, epoch %d%s", a.Verb, a.Epoch, how))
					if a.Verb == capture.Assign {
						h.last[node] = a
					}
				}
			}
		}
		h.now = h.now.Add(time.Second)
		if calm {
			return
		}
	}
	t.Fatal("the nodes do not come to rest")
}

// An address goes from one node to another and back, as both decide, and what became of a call that
// was late.
func TestPictureOfEpochs(t *testing.T) {
	addr := netip.MustParseAddr("10.20.0.10")
	h := &handover{
		picture: &picture{width: 900, title: "An address changes hands, and a late call is refused"},
		now:     time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), y: 76, absent: capture.Absent{Drained: map[string]bool{}},
		claims: map[capture.Key]capture.Claim{}, last: map[string]capture.Action{},
		views: map[string]*capture.View{"router-a": capture.NewView(), "router-b": capture.NewView()},
		pool: capture.Pool{
			Name: "web", Prefix: netip.MustParsePrefix("10.20.0.0/24"), Hold: 10 * time.Second, LeaseTTL: 10 * time.Second,
			Addresses: []capture.Address{{Addr: addr, Owner: capture.Location{Site: "dc"}}},
		},
	}
	for i, node := range []string{"router-a", "router-b"} {
		h.pool.Members = append(h.pool.Members, capture.Member{
			Node: node, Site: "cloud", Role: capture.RoleCloud, Group: "edge", Priority: i,
			Capture: capture.Capture{Method: capture.SecondaryIP, ProviderRef: "cloud", NIC: "eni-" + node},
		})
	}
	key := capture.Key{Pool: h.pool.Name, Address: addr, Domain: h.pool.Members[0].Domain()}

	h.note("Both are alive: router-a has the better priority")
	h.settle(t)
	late := h.last["router-a"]
	h.note("tasuki captures drain router-a")
	h.absent.Drained["router-a"] = true
	h.settle(t)
	h.note("A call of router-a from before the drain wakes up, and asks the gate")
	why := capture.Gate(h.claims[key], late.Token)
	if why.Why() != "otherEpoch" {
		t.Fatalf("the gate says %q of %s", why, late.ID())
	}
	h.row("router-a", "claims store", "no", fmt.Sprintf("%s, epoch %d", late.Verb, late.Epoch))
	h.text(columns["claims store"]+14, h.y-36, "small", "refused: %s", why)
	h.story = append(h.story, "refused: "+string(why))
	h.note("tasuki captures undrain router-a")
	delete(h.absent.Drained, "router-a")
	h.settle(t)
	if c := h.claims[key]; c.Epoch != 3 || c.Holder != "router-a" {
		t.Fatalf("in the end it is with %s", c)
	}

	h.height = h.y
	rows := h.body.String()
	h.body.Reset()
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		x := columns[name]
		h.text(x, 30, "strong mid", "%s", name)
		h.line(x, 40, x, h.height-16, "edge")
	}
	h.body.WriteString(rows)
	h.about = "Four columns: router-a, the claims store, router-b, the provider. From top to bottom: " + strings.Join(h.story, ". ") + "."
	h.keep(t, "epochs.svg")
}
