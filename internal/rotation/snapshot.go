package rotation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Snapshot is everything that one decision reads: one NodePool and what belongs to it,
// seen at one moment. The zero value is an ungoverned, empty pool.
type Snapshot struct {
	NodePool   NodePool
	Governance Governance

	// NodeClaims holds every NodeClaim of the pool, in any order.
	NodeClaims []NodeClaim

	// Nodes holds every Node of the pool by name.
	Nodes map[string]Node

	// Placeholder is the placeholder pod of the anchored rotation, nil when there is none.
	Placeholder *Placeholder

	// Strays are the other placeholders of the pool: none that the anchor owns.
	Strays []Placeholder

	// Unswept says that the strays cannot be taken away at present, and are decided around.
	Unswept bool

	// Trouble is why the last write for the pool failed, for people.
	Trouble string

	// Pods holds the pods bound to the nodes that Focus names. A node that is absent
	// here reads as empty, so a snapshot without pods may only be used to find out
	// whether there is something to decide at all.
	Pods map[string][]*corev1.Pod
}

// Governance says which RotationPolicy rules the pool (§5.4). At most one field is set;
// the zero value is a pool that no policy selects.
type Governance struct {
	Policy   *Policy
	Conflict []string // names of the policies that tie, sorted
}

// Object identifies one version of one API object. A Step is valid for that version only.
type Object struct {
	Kind    Kind
	Name    string
	UID     string
	Version string // resourceVersion
}

// Kind is the kind of an API object that a rotation writes.
type Kind string

// The kinds that a rotation writes.
const (
	KindNodePool    Kind = "NodePool"
	KindNodeClaim   Kind = "NodeClaim"
	KindNode        Kind = "Node"
	KindPlaceholder Kind = "Pod"
)

// NodePool is what a decision reads of a Karpenter NodePool.
type NodePool struct {
	Object
	Annotations map[string]string

	Static       bool           // spec.replicas is set (§3.3)
	ExpireAfter  *time.Duration // spec.template.spec.expireAfter; nil is Never
	GracePeriod  *time.Duration // spec.template.spec.terminationGracePeriod; nil is unset
	Requirements []Requirement  // spec.template.spec.requirements
	Taints       []corev1.Taint // spec.template.spec.taints, without startupTaints
	Limits       corev1.ResourceList
	InUse        corev1.ResourceList // status.resources
}

// NodeClaim is what a decision reads of a Karpenter NodeClaim. Its own expireAfter and
// terminationGracePeriod rule its rotation, not the template's.
type NodeClaim struct {
	Object
	Annotations map[string]string

	Created      time.Time
	Deleting     time.Time      // deletionTimestamp; zero when not being deleted
	ExpireAfter  *time.Duration // nil is Never
	GracePeriod  *time.Duration // terminationGracePeriod; nil is unset
	Requirements []Requirement
	NodeName     string // empty until the Node has registered
	Ready        bool
	Allocatable  corev1.ResourceList // status.allocatable, Karpenter's estimate
}

// Node is what a decision reads of a Node.
type Node struct {
	Object
	Labels      map[string]string
	Annotations map[string]string

	Claim         string // the NodeClaim that owns it, known before that claim knows its Node
	Taints        []corev1.Taint
	Allocatable   corev1.ResourceList // status.allocatable; only a fresh read has it
	Unschedulable bool
	Ready         bool
	Deleting      bool
}

// Placeholder is what a decision reads of the placeholder pod.
type Placeholder struct {
	Object
	NodePool string // the pool that it is pinned to
	SurgeFor string // the NodeClaim whose drain it reserves for

	Created  time.Time
	NodeName string // empty until bound
	Phase    corev1.PodPhase
	Deleting bool
	Waiting  Waiting
}

// Waiting is what the scheduler says of a pod that it cannot bind, the zero value of one
// that it can.
type Waiting struct{ Reason, Message string }

// Requirement is a node requirement of a NodePool or NodeClaim. Operator is one of In,
// NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte.
type Requirement struct {
	Key      string
	Operator string
	Values   []string
}

func (s *Snapshot) claim(name string) *NodeClaim {
	for i := range s.NodeClaims {
		if s.NodeClaims[i].Name == name {
			return &s.NodeClaims[i]
		}
	}
	return nil
}

// claimOn returns the NodeClaim under a node: the one that names the node, or that the
// node names as its owner, which Karpenter writes a moment earlier.
func (s *Snapshot) claimOn(node string) *NodeClaim {
	if node == "" {
		return nil
	}
	for i := range s.NodeClaims {
		if s.NodeClaims[i].NodeName == node {
			return &s.NodeClaims[i]
		}
	}
	return s.claim(s.Nodes[node].Claim)
}

// nodesOf names the nodes of a claim: the one that the claim names, and then those that name
// the claim as their owner, on which pods can run already. That there are two is no state in
// which Karpenter leaves a claim, but in doubt both are looked at.
func (s *Snapshot) nodesOf(c *NodeClaim) []string {
	var names []string
	for name, n := range s.Nodes {
		if n.Claim == c.Name && name != c.NodeName {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if c.NodeName != "" {
		names = append([]string{c.NodeName}, names...)
	}
	return names
}

// nodeOf is the first of them, empty when there is none yet.
func (s *Snapshot) nodeOf(c *NodeClaim) string {
	if names := s.nodesOf(c); len(names) > 0 {
		return names[0]
	}
	return ""
}

// Focus names the nodes whose pods Decide reads at this instant: the node of the
// candidate and, in a rotation under way, the node of its surge. It is empty when no
// pod matters, which is nearly always.
func Focus(s Snapshot, now time.Time) []string {
	var claims []*NodeClaim
	if name := s.NodePool.Annotations[AnnotationActive]; name != "" {
		c := s.claim(name)
		if c == nil {
			return nil
		}
		claims = append(claims, c, s.claim(c.Annotations[AnnotationSurgeClaim]))
		if s.Placeholder != nil {
			claims = append(claims, s.claimOn(s.Placeholder.NodeName))
		}
	} else if p := s.Governance.Policy; p != nil {
		if c := s.survey(p, now).first; s.startGate(p, c, now).Reason == "" {
			claims = append(claims, c)
		}
	}
	var nodes []string
	seen := map[string]bool{}
	for _, c := range claims {
		if c == nil {
			continue
		}
		for _, node := range s.nodesOf(c) {
			if !seen[node] {
				seen[node] = true
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}
