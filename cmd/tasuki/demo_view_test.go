package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/lab/trial"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pods(states ...trial.PodState) []trial.ScenePod {
	var all []trial.ScenePod
	for _, s := range states {
		all = append(all, trial.ScenePod{Name: "web", State: s})
	}
	return all
}

const (
	oldNode = "kwok-web-tv6b5-tradercurse-1-i9rgdrzdjr-3841984102"
	newNode = "kwok-web-5llcr-apejet-2-pcseyjbw2h-2057891343"
)

// waiting is a demo whose node comes of age; draining one in the middle of the drain.
func waiting() view {
	return view{
		now: noon.Add(42 * time.Second), begun: noon.Add(-12 * time.Second), threshold: time.Minute,
		scene: trial.Scene{Ready: 6, Replicas: 6, Nodes: []trial.SceneNode{{
			Name: oldNode, Claim: "web-tv6b5", Born: noon, Ready: true,
			Pods: pods(trial.PodServing, trial.PodServing, trial.PodServing, trial.PodServing, trial.PodServing, trial.PodServing),
		}}},
		account: trial.Account{Replicas: 6},
	}
}

func draining() view {
	return view{
		now: noon.Add(100 * time.Second), begun: noon.Add(-12 * time.Second), threshold: time.Minute,
		scene: trial.Scene{Ready: 5, Replicas: 6, Nodes: []trial.SceneNode{
			{Name: oldNode, Claim: "web-tv6b5", Born: noon, Ready: true, Cordoned: true, Protected: true, Leaving: true,
				Pods: pods(trial.PodDeparts, trial.PodServing, trial.PodServing, trial.PodServing)},
			{Name: newNode, Claim: "web-5llcr", Born: noon.Add(time.Minute), Ready: true, Protected: true,
				Pods: pods(trial.PodServing, trial.PodServing)},
		}, Unbound: pods(trial.PodUnbound)},
		account: trial.Account{
			Replicas: 6, Claim: "web-tv6b5", OldNode: oldNode, NewNode: newNode,
			Started: noon.Add(60 * time.Second), Capacity: noon.Add(64 * time.Second), Deleted: noon.Add(65 * time.Second),
		},
	}
}

func TestFrame(t *testing.T) {
	surging := draining()
	surging.account.Capacity, surging.account.Deleted, surging.account.NewNode = time.Time{}, time.Time{}, ""
	surging.scene.Unbound = []trial.ScenePod{{Name: "p", State: trial.PodUnbound, Placeholder: true}}
	surging.scene.Nodes[0].Leaving = false
	surging.scene.Nodes[1] = trial.SceneNode{Claim: "web-5llcr", Born: noon.Add(time.Minute)}
	done := waiting()
	done.account = draining().account
	done.account.Drained, done.account.Ended = done.now, done.now
	done.scene.Nodes[0].Name, done.scene.Nodes[0].Claim = newNode, "web-5llcr"
	for _, c := range []struct {
		name string
		view view
		want string
	}{
		{"waiting for the age", waiting(), `
 ▶ wait ─ · surge ─ · hand-over ─ · drain ─ · release ─ · done             0:54
 node age 0:42 of 1:00 ━━━━━━━━━━━━━━━━━━━━━───────── due in 0:18

 old kwok-web-tv6b5-tradercurse… web-tv6b5   Ready               ● ● ● ● ● ●

 ● ready  ◐ starting  ◌ leaving  ▢ placeholder  6 of 6 pods Ready`},
		{"waiting for the surge", surging, `
 ✔ wait ─ ▶ surge ─ · hand-over ─ · drain ─ · release ─ · done             1:52

 old kwok-web-tv6b5-tradercurse… web-tv6b5   Ready, cordoned     ◌ ● ● ●
 new (no node yet)               web-5llcr   launching
     not bound to a node                                         ▢

 ● ready  ◐ starting  ◌ leaving  ▢ placeholder  5 of 6 pods Ready`},
		{"in the drain", draining(), `
 ✔ wait ─ ✔ surge ─ ✔ hand-over ─ ▶ drain ─ · release ─ · done             1:52

 old kwok-web-tv6b5-tradercurse… web-tv6b5   draining            ◌ ● ● ●
 new kwok-web-5llcr-apejet-2-pc… web-5llcr   Ready, protected    ● ●
     not bound to a node                                         ?

 ● ready  ◐ starting  ◌ leaving  ▢ placeholder  5 of 6 pods Ready`},
		{"done", done, `
 ✔ wait ─ ✔ surge ─ ✔ hand-over ─ ✔ drain ─ ✔ release ─ ✔ done             0:54

 new kwok-web-5llcr-apejet-2-pc… web-5llcr   Ready               ● ● ● ● ● ●

 ● ready  ◐ starting  ◌ leaving  ▢ placeholder  6 of 6 pods Ready`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, strings.Join(c.view.frame(80, false), "\n")); diff != "" {
				t.Errorf("frame (-want +got):\n%s", diff)
			}
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9]+m")

// A row that the terminal wraps would break the redraw.
func TestFrameFitsItsWidth(t *testing.T) {
	for _, v := range []view{waiting(), draining(), {}} {
		for width := 0; width <= 120; width++ {
			for _, row := range v.frame(width, true) {
				if n := utf8.RuneCountInString(escapes.ReplaceAllString(row, "")); n > width {
					t.Fatalf("row %q has %d columns, want at most %d", row, n, width)
				}
			}
		}
	}
}

func TestColourIsAllThatColourAdds(t *testing.T) {
	for _, v := range []view{waiting(), draining()} {
		coloured := escapes.ReplaceAllString(strings.Join(v.frame(80, true), "\n"), "")
		plain := strings.Join(v.frame(80, false), "\n")
		trim := func(s string) []string {
			var rows []string
			for _, r := range strings.Split(s, "\n") {
				rows = append(rows, strings.TrimRight(r, " "))
			}
			return rows
		}
		if diff := cmp.Diff(trim(plain), trim(coloured)); diff != "" {
			t.Errorf("frame (-plain +coloured, without escapes):\n%s", diff)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"the node is gone", 16, []string{"the node is gone"}},
		{"the node is gone", 15, []string{"the node is", "gone"}},
		{"node kwok-web-tv6b5 is gone", 8, []string{"node", "kwok-web-tv6b5", "is gone"}},
	} {
		if diff := cmp.Diff(c.want, wrap(c.text, c.width)); diff != "" {
			t.Errorf("wrap(%q, %d) (-want +got):\n%s", c.text, c.width, diff)
		}
	}
}
