package reference

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// lane is an object in the picture of a rotation. Its bar changes its class where it changes.
type lane struct {
	name        string
	y, from     int
	class, says string
}

// A rotation from its window to the end, as the transcript of the ordinary night has it, which is
// what the controller's own decisions say (rotation.TestTranscripts).
func TestPictureOfARotation(t *testing.T) {
	archive, err := txtar.ParseFile("../rotation/testdata/happy-path.txtar")
	if err != nil {
		t.Fatal(err)
	}
	const top, step, left = 84, 56, 150
	p := &picture{title: "One rotation, write by write"}
	lanes := []*lane{{name: "NodePool"}, {name: "the old node"}, {name: "placeholder pod"}, {name: "the new node"}}
	for i, l := range lanes {
		l.y = top + i*52
	}
	pool, old, holder, fresh := lanes[0], lanes[1], lanes[2], lanes[3]
	of := map[string]*lane{
		"NodePool/blue": pool, "NodeClaim/blue-a": old, "Node/node-a": old, "Pod/noderotation-surge-blue-a": holder, "Node/node-b": fresh,
	}
	x, now, phase := left, "", ""
	var acts, story []string
	change := func(l *lane, class, says string) {
		if l.class != "" {
			p.rect(l.from, l.y-13, x-l.from, 26, l.class)
			p.text(l.from+6, l.y-17, "small", "%s", l.says)
		}
		l.from, l.class, l.says = x, class, says
	}
	begin := func(name string) {
		p.line(x, 40, x, top+3*52+30, "rule")
		p.text(x+6, 52, "strong", "%s", name)
		phase = name
	}
	was, numbers := "", []func(){}
	old.from, old.class, old.says = x, "ok", "serves"
	for line := range strings.Lines(string(archive.Files[1].Data)) {
		line = strings.TrimSpace(line)
		word := strings.Fields(line + " .")
		switch {
		case strings.HasPrefix(line, "it is "):
			now = word[len(word)-2]
		case word[0] == "write":
			if now != was {
				p.text(x+6, 68, "small soft", "%s", now)
				was = now
			}
			n, err := strconv.Atoi(strings.TrimSuffix(word[1], ":"))
			if err != nil || n != len(acts)+1 {
				t.Fatalf("write %s after %d", word[1], len(acts))
			}
			act, object := word[2], word[3]
			switch act {
			case "claimAnchor":
				begin("surge")
			case "freezeNode":
				if phase == "surge" && strings.Contains(line, "cordoned") {
					change(old, "due", "cordoned")
				}
			case "createPlaceholder":
				change(holder, "calm", "waits for room")
			case "recordDraining":
				begin("drain")
			case "deletePlaceholder":
				change(holder, "", "")
			case "deleteNodeClaim":
				change(old, "over", "drained by Karpenter")
				change(fresh, "ok", "takes the pods")
			case "releaseNode":
				begin("finish")
			}
			at, on := x, of[object]
			if on == nil {
				t.Fatalf("write %d is on %s, which is in no lane", n, object)
			}
			numbers = append(numbers, func() { p.number(at+14, on.y, n) })
			acts = append(acts, act)
			story = append(story, fmt.Sprintf("%d %s on %s", n, act, object))
			x += step
		case strings.HasPrefix(line, "> claim blue-b"):
			change(fresh, "calm", "launched")
			x += step
		case strings.HasPrefix(line, "> placeholder running"):
			change(holder, "ok", "runs")
			change(fresh, "ok", "Ready")
			x += step
		case strings.HasPrefix(line, "> gone blue-a"):
			x += 3 * step
			change(old, "", "")
		}
	}
	if len(acts) != 12 {
		t.Fatalf("%d writes, want 12", len(acts))
	}
	begin("cooldown")
	x += 2 * step
	change(fresh, "", "")
	for _, l := range lanes {
		p.text(12, l.y+4, "strong", "%s", l.name)
		p.line(left, l.y+22, x, l.y+22, "edge")
	}
	for _, draw := range numbers {
		draw()
	}
	words := regexp.MustCompile(`([a-z])([A-Z])`)
	for i, act := range acts {
		p.text(12+i/4*300, top+4*52+24+i%4*20, "small", "%d  %s", i+1, strings.ToLower(words.ReplaceAllString(act, "$1 $2")))
	}
	p.width, p.height = x+20, top+4*52+104
	p.about = "Four lanes: NodePool, the old node, the placeholder pod, the new node. In the phase surge the old node is cordoned, the placeholder waits, and Karpenter launches a new node for it, until it runs there. " +
		"In the phase drain the placeholder is removed and the old NodeClaim deleted: Karpenter drains it into the new node. Then what was held is given back, and the pool cools down. The writes in order: " + strings.Join(story, ", ") + "."
	p.keep(t, "rotation.svg")
}
