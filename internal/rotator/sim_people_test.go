package rotator

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// simFinalizer is what a person puts on a placeholder, so that it does not go.
const simFinalizer = "simulation/held"

// simOdd are annotations that somebody may have typed.
var simOdd = map[string][]string{
	"NodeClaim": {rotation.AnnotationStartedAt, rotation.AnnotationFailedAt, rotation.AnnotationRetryCount, rotation.AnnotationState, rotation.AnnotationRequested},
	"NodePool":  {rotation.AnnotationLastRotation, rotation.AnnotationLastFailure, rotation.AnnotationWindowOpened, rotation.AnnotationDrainingAt},
}

// people lists what operators may do. Each of it is rare.
func (s *sim) people(add adder) {
	now := s.api.now
	for _, o := range s.api.objects[simNodes] {
		n := o.(*corev1.Node)
		if !n.Spec.Unschedulable {
			add(now, 1+4*s.hosts(n.Name), "person", "cordon", n.Name)
		} else if s.laws.cordon[n.Name] == "person" {
			add(now, 2, "person", "uncordon", n.Name)
		}
		switch n.Annotations[rotation.AnnotationDoNotDisrupt] {
		case "":
			add(now, 1, "person", "protect", n.Name)
		case "true":
			if s.laws.protect[n.Name] == "person" {
				add(now, 2, "person", "unprotect", n.Name)
			}
		}
	}
	for _, spec := range simSpecs {
		p, ok := s.api.get(simPools, spec.name).(*karpv1.NodePool)
		if !ok {
			continue
		}
		rare := 1
		if p.Annotations[rotation.AnnotationActive] != "" { // a rotation to disturb
			rare = 2
		}
		switch p.Annotations[rotation.AnnotationFreeze] {
		case "":
			add(now, 1, "person", "freeze", p.Name, "20m")
			add(now, 1, "person", "freeze", p.Name, "garbage")
		default:
			add(now, 3, "person", "thaw", p.Name)
		}
		switch policy, ok := s.api.get(simPolicies, p.Name).(*v1alpha1.RotationPolicy); {
		case !ok:
			add(now, 8, "person", "restore", p.Name)
		case spoiled(policy):
			add(now, 4, "person", "mend", p.Name)
		default:
			add(now, 1, "person", "edit", p.Name)
			add(now, rare, "person", "withdraw", p.Name)
		}
		if s.api.get(simPolicies, "rival-"+p.Name) == nil {
			add(now, rare, "person", "rival", p.Name)
		} else {
			add(now, 8, "person", "unrival", p.Name)
		}
		if p.Spec.Replicas == nil {
			add(now, 1, "person", "static", p.Name)
		} else {
			add(now, 8, "person", "dynamic", p.Name)
		}
		if p.Spec.Limits == nil {
			add(now, 1, "person", "limit", p.Name)
		} else {
			add(now, 4, "person", "unlimit", p.Name)
		}
		if p.Annotations[rotation.AnnotationActive] != "" {
			add(now, 1, "person", "unanchor", p.Name)
		}
		s.oddities(add, simPools, p)
	}
	for _, o := range s.api.objects[simClaims] {
		if o.GetDeletionTimestamp() == nil {
			s.oddities(add, simClaims, o)
			switch s.api.rv % 7 {
			case 0:
				add(now, 1, "person", "request", o.GetName(), rotation.RequestNow)
			case 1:
				add(now, 1, "person", "request", o.GetName(), rotation.RequestWindow)
			}
			if s.api.rv%5 == 0 {
				add(now, 1, "person", "delete", o.GetName())
			}
		}
	}
	for _, o := range s.api.objects[simPods] {
		if p := o.(*corev1.Pod); isPlaceholder(p) && len(p.Finalizers) == 0 {
			add(now, 2, "person", "hold", p.Name)
		} else if isPlaceholder(p) {
			add(now, 6, "person", "let-go", p.Name)
		}
	}
}

func (s *sim) oddities(add adder, k simKind, o client.Object) {
	for i, key := range simOdd[k.String()] {
		switch v := o.GetAnnotations()[key]; {
		case v == "odd":
			add(s.api.now, 4, "person", "tidy", o.GetName(), key)
		case s.api.rv%8 == i:
			add(s.api.now, 1, "person", "odd", o.GetName(), key)
		}
	}
}

// personDoes is one thing that an operator does with kubectl.
func (s *sim) personDoes(verb, on, with string) bool {
	const by = "person"
	annotate := func(k simKind, o client.Object, key, value string) bool {
		if o == nil || o.GetAnnotations()[key] == value {
			return false
		}
		a := maps.Clone(o.GetAnnotations())
		if a == nil {
			a = map[string]string{}
		}
		a[key] = value
		if value == "" {
			delete(a, key)
		}
		s.api.change(by, k, o, func(o client.Object) { o.SetAnnotations(a) })
		return true
	}
	node, pool := s.api.get(simNodes, on), s.api.get(simPools, on)
	editPool := func(edit func(*karpv1.NodePool)) bool {
		if pool == nil {
			return false
		}
		s.api.change(by, simPools, pool, func(o client.Object) { edit(o.(*karpv1.NodePool)) })
		return true
	}
	switch verb {
	case "cordon", "uncordon":
		if node == nil || node.(*corev1.Node).Spec.Unschedulable == (verb == "cordon") {
			return false
		}
		s.api.change(by, simNodes, node, func(o client.Object) { o.(*corev1.Node).Spec.Unschedulable = verb == "cordon" })
		return true
	case "protect":
		return annotate(simNodes, node, rotation.AnnotationDoNotDisrupt, "true")
	case "unprotect":
		return annotate(simNodes, node, rotation.AnnotationDoNotDisrupt, "")
	case "freeze":
		if d, err := time.ParseDuration(with); err == nil {
			with = s.api.now.Add(d).UTC().Format(time.RFC3339)
		}
		return annotate(simPools, pool, rotation.AnnotationFreeze, with)
	case "request":
		return annotate(simClaims, s.api.get(simClaims, on), rotation.AnnotationRequested, with)
	case "thaw":
		return annotate(simPools, pool, rotation.AnnotationFreeze, "")
	case "unanchor":
		return annotate(simPools, pool, rotation.AnnotationActive, "")
	case "odd", "tidy":
		k, o := simPools, pool
		if o == nil {
			k, o = simClaims, s.api.get(simClaims, on)
		}
		if verb == "tidy" {
			return annotate(k, o, with, "")
		}
		return annotate(k, o, with, "odd")
	case "static":
		return editPool(func(p *karpv1.NodePool) { p.Spec.Replicas = new(int64) })
	case "dynamic":
		return editPool(func(p *karpv1.NodePool) { p.Spec.Replicas = nil })
	case "limit":
		return editPool(func(p *karpv1.NodePool) { p.Spec.Limits = karpv1.Limits{"nodes": resource.MustParse("2")} })
	case "unlimit":
		return editPool(func(p *karpv1.NodePool) { p.Spec.Limits = nil })
	case "restore", "rival":
		i := slices.IndexFunc(simSpecs, func(x simSpec) bool { return x.name == on })
		policy := simSpecs[i].policy()
		if verb == "rival" {
			policy.Name = "rival-" + on
		}
		return s.api.create(by, simPolicies, policy) == nil
	case "withdraw", "unrival":
		if verb == "unrival" {
			on = "rival-" + on
		}
		if p := s.api.get(simPolicies, on); p != nil {
			s.api.end(by, simPolicies, p)
			return true
		}
	case "edit", "mend":
		if p := s.api.get(simPolicies, on); p != nil {
			s.api.change(by, simPolicies, p, editPolicy)
			return true
		}
	case "delete":
		if c := s.api.get(simClaims, on); c != nil {
			s.api.remove(by, simClaims, c, false)
			return true
		}
	case "hold", "let-go":
		p := s.api.get(simPods, on)
		if p == nil || (len(p.GetFinalizers()) > 0) == (verb == "hold") || p.GetDeletionTimestamp() != nil && verb == "hold" {
			return false
		}
		s.api.change(by, simPods, p, func(o client.Object) {
			o.SetFinalizers(nil)
			if verb == "hold" {
				o.SetFinalizers([]string{simFinalizer})
			}
		})
		return true
	}
	return false
}

// putRight is the end of all that people have done: whatever is in the way is taken away.
func (s *sim) putRight() {
	for {
		var undo []move
		add := func(_ time.Time, _ int, words ...string) {
			switch m := moveOf(words); m[1] {
			case "uncordon", "unprotect", "thaw", "restore", "unrival", "dynamic", "unlimit", "tidy", "let-go", "mend":
				undo = append(undo, m)
			}
		}
		s.people(add)
		if len(undo) == 0 {
			return
		}
		for _, m := range undo {
			s.personDoes(m[1], m[2], m[3])
		}
	}
}
