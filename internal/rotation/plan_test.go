package rotation

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node builds a Node from its annotations, given as key, value, ...
func nodeWith(cordoned bool, pairs ...string) Node {
	n := Node{Object: Object{Kind: KindNode, Name: "node-a", UID: "u", Version: "1"}, Unschedulable: cordoned, Ready: true}
	for i := 0; i < len(pairs); i += 2 {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[pairs[i]] = pairs[i+1]
	}
	return n
}

func TestFreezeTakesOnlyWhatIsFree(t *testing.T) {
	const step = "freezeNode Node/node-a"
	for _, tt := range []struct {
		name   string
		node   Node
		cordon bool
		want   string // "" when nothing is missing
	}{
		{"a candidate", nodeWith(false), true,
			step + " karpenter.sh/do-not-disrupt=true cordoned=true do-not-disrupt-owned=true surge-for=blue-a unschedulable=true"},
		{"a surge host is not cordoned", nodeWith(false), false,
			step + " karpenter.sh/do-not-disrupt=true do-not-disrupt-owned=true surge-for=blue-a"},
		{"r15 the operator's cordon stays theirs", nodeWith(true), true,
			step + " karpenter.sh/do-not-disrupt=true do-not-disrupt-owned=true surge-for=blue-a"},
		{"r16 the operator's do-not-disrupt stays theirs", nodeWith(true, AnnotationDoNotDisrupt, "true"), true,
			step + " surge-for=blue-a"},
		{"r17 do-not-disrupt=false protects nothing", nodeWith(true, AnnotationDoNotDisrupt, "false"), true,
			step + " karpenter.sh/do-not-disrupt=true do-not-disrupt-owned=true surge-for=blue-a"},
		{"of an earlier rotation", nodeWith(true, AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true", AnnotationSurgeFor, "blue-z"), true,
			step + " surge-for=blue-a"},
		{"ours, uncordoned by somebody", nodeWith(false, AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true", AnnotationSurgeFor, "blue-a", AnnotationCordoned, "true"), true,
			step + " unschedulable=true"},
		{"ours, the annotation taken off by somebody", nodeWith(true, AnnotationDoNotDisruptOwned, "true", AnnotationSurgeFor, "blue-a", AnnotationCordoned, "true"), true,
			step + " karpenter.sh/do-not-disrupt=true"},
		{"nothing is missing", nodeWith(true, AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true", AnnotationSurgeFor, "blue-a", AnnotationCordoned, "true"), true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, missing := freeze(tt.node, "blue-a", tt.cordon)
			if missing != (tt.want != "") {
				t.Fatalf("missing %t: %s", missing, got)
			}
			if missing && got.String() != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestReleaseTakesBackOnlyWhatIsOurs(t *testing.T) {
	const step = "releaseNode Node/node-a"
	for _, tt := range []struct {
		name string
		node Node
		want string
	}{
		{"all of it ours", nodeWith(true, AnnotationSurgeFor, "blue-a", AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true", AnnotationCordoned, "true"),
			step + " -surge-for -do-not-disrupt-owned -cordoned -karpenter.sh/do-not-disrupt unschedulable=false"},
		{"the operator's do-not-disrupt", nodeWith(true, AnnotationSurgeFor, "blue-a", AnnotationDoNotDisrupt, "true", AnnotationCordoned, "true"),
			step + " -surge-for -cordoned unschedulable=false"},
		{"r15 the operator's cordon", nodeWith(true, AnnotationSurgeFor, "blue-a", AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true"),
			step + " -surge-for -do-not-disrupt-owned -karpenter.sh/do-not-disrupt"},
		{"uncordoned by somebody meanwhile", nodeWith(false, AnnotationSurgeFor, "blue-a", AnnotationCordoned, "true"),
			step + " -surge-for -cordoned"},
		{"a marker that does not say true owns nothing", nodeWith(true, AnnotationSurgeFor, "blue-a", AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "yes", AnnotationCordoned, "yes"),
			step + " -surge-for -do-not-disrupt-owned -cordoned"},
		{"other annotations", nodeWith(false, AnnotationSurgeFor, "blue-a", "example.com/rack", "7"),
			step + " -surge-for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := release(tt.node, "blue-a").String(); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Nodes are released by their own marker, in the order of their names, and only those of
// this rotation.
func TestCleanupReleasesTheNodesOfThisRotation(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	for name, of := range map[string]string{"node-c": "blue-a", "node-a": "blue-a", "node-b": "blue-z", "node-d": ""} {
		w.Nodes[name] = Node{Object: Object{Name: name}, Annotations: map[string]string{AnnotationSurgeFor: of}}
	}
	var released []string
	for _, st := range w.cleanup("blue-a") {
		released = append(released, st.On.Name)
	}
	if diff := cmp.Diff([]string{"node-a", "node-c"}, released); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheAnchorTakesItsCompanionsWithIt(t *testing.T) {
	s := Snapshot{NodePool: NodePool{Annotations: map[string]string{
		AnnotationActive: "blue-a", AnnotationActiveState: "draining", AnnotationDrainingAt: "x", AnnotationSurgeWait: "x",
		AnnotationSurgePath: "x", AnnotationLastRotation: "x", AnnotationLastFailure: "x", AnnotationFreeze: "x", "example.com/owner": "x",
	}}}
	got := s.releaseAnchor(nil, Facts{}).Clear
	slices.Sort(got)
	want := []string{AnnotationActive, AnnotationActiveState, AnnotationDrainingAt, AnnotationSurgePath, AnnotationSurgeWait}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
