package trial

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Scene is how the subject looks at this moment.
type Scene struct {
	Nodes    []SceneNode // oldest first; a NodeClaim that has no node yet is one without a Name
	Unbound  []ScenePod
	Ready    int // workload pods that are Ready and stay
	Replicas int
}

// SceneNode is a node of the pool, and the NodeClaim under it.
type SceneNode struct {
	Name      string
	Claim     string
	Born      time.Time // creation of the NodeClaim, by which its age counts
	Ready     bool
	Cordoned  bool
	Protected bool // by the controller's marks
	Leaving   bool
	Pods      []ScenePod // by name, the placeholder first
}

// ScenePod is a workload pod or the placeholder.
type ScenePod struct {
	Name        string
	State       PodState
	Placeholder bool
}

// PodState is the part of a pod's life that matters to a drain.
type PodState string

// The states of a pod.
const (
	PodUnbound  PodState = "unbound"
	PodStarting PodState = "starting"
	PodServing  PodState = "ready"
	PodDeparts  PodState = "leaving"
)

func podState(p seen) PodState {
	switch {
	case p.leaving:
		return PodDeparts
	case p.node == "":
		return PodUnbound
	case p.ready, p.role == rolePlaceholder && p.running:
		return PodServing
	}
	return PodStarting
}

// scene draws the present state of the ledger.
func (l *ledger) scene() Scene {
	s := Scene{Ready: l.ready(), Replicas: l.subject.Replicas}
	at := map[string]int{}
	for name, n := range l.nodes {
		s.Nodes = append(s.Nodes, SceneNode{
			Name: name, Born: n.created, Ready: n.ready, Cordoned: n.cordoned, Leaving: n.leaving,
			Protected: n.annotations[rotation.AnnotationSurgeFor] != "",
		})
		at[name] = len(s.Nodes) - 1
	}
	for name, c := range l.claims {
		if i, ok := at[c.node]; ok {
			s.Nodes[i].Claim, s.Nodes[i].Born = name, c.created
			s.Nodes[i].Leaving = s.Nodes[i].Leaving || c.leaving
		} else {
			s.Nodes = append(s.Nodes, SceneNode{Claim: name, Born: c.created, Leaving: c.leaving})
		}
	}
	for _, pods := range []map[string]seen{l.placeholders, l.pods} {
		for name, p := range pods {
			pod := ScenePod{Name: name, State: podState(p), Placeholder: p.role == rolePlaceholder}
			if i, ok := at[p.node]; ok {
				s.Nodes[i].Pods = append(s.Nodes[i].Pods, pod)
			} else {
				s.Unbound = append(s.Unbound, pod)
			}
		}
	}
	slices.SortFunc(s.Nodes, func(a, b SceneNode) int {
		return cmp.Or(a.Born.Compare(b.Born), cmp.Compare(a.Claim, b.Claim))
	})
	for _, n := range s.Nodes {
		sortPods(n.Pods)
	}
	sortPods(s.Unbound)
	return s
}

func sortPods(pods []ScenePod) {
	slices.SortFunc(pods, func(a, b ScenePod) int {
		if a.Placeholder != b.Placeholder {
			if a.Placeholder {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
}
