package rotator

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// simCache is what one incarnation knows of one kind: a prefix of the kind's history, as
// long as the schedule lets it be.
type simCache struct {
	kind    simKind
	objects []client.Object
	at      int // writes of the history that have arrived
}

// fill is the first list, which may be as old as the watch cache of the API server.
func (c *simCache) fill(s *simServer, missing int) {
	c.at, c.objects = max(0, len(s.history[c.kind])-missing), nil
	for _, w := range s.history[c.kind][:c.at] {
		c.objects = replaced(c.objects, w)
	}
}

// deliver lets one write arrive and returns the pools that it wakes.
func (c *simCache) deliver(s *simServer) []string {
	w := s.history[c.kind][c.at]
	c.at++
	c.objects = replaced(c.objects, w)
	return wakes(w)
}

func (c *simCache) behind(s *simServer) int { return len(s.history[c.kind]) - c.at }

// watched are the predicates under which a change of a kind is heard.
var watched = [simKinds]predicate.Predicate{
	simPools: poolChanged, simClaims: claimChanged, simNodes: nodeChanged,
	simPods: predicate.Funcs{}, simPolicies: predicate.GenerationChangedPredicate{},
}

// wakes names the pools that a write wakes once its event has arrived.
func wakes(w simWrite) []string {
	if w.Before != nil && w.After != nil && !watched[w.Kind].Update(event.UpdateEvent{ObjectOld: w.Before, ObjectNew: w.After}) {
		return nil
	}
	o := w.Of()
	switch w.Kind {
	case simPools:
		return []string{o.GetName()}
	case simPolicies:
		return simPoolNames
	case simPods:
		if o.GetLabels()[rotation.LabelPlaceholder] == "" {
			return nil // not in the cache
		}
		return requested(o.(*corev1.Pod).Spec.NodeSelector[karpv1.NodePoolLabelKey])
	}
	return requested(o.GetLabels()[karpv1.NodePoolLabelKey])
}

func requested(pool string) []string {
	if pool == "" {
		return nil
	}
	return []string{pool}
}

func (c *simCache) get(key client.ObjectKey, into client.Object) error {
	for _, o := range c.objects {
		if o.GetName() == key.Name {
			read(o, into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: c.kind.String()}, key.Name)
}
