package rotator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// simKind is one of the kinds that the controller watches.
type simKind int

const (
	simPools simKind = iota
	simClaims
	simNodes
	simPods
	simPolicies
	simKinds // how many there are
)

var simKindNames = [simKinds]string{"NodePool", "NodeClaim", "Node", "Pod", "RotationPolicy"}

func (k simKind) String() string { return simKindNames[k] }

// simWrite is one durable change of one object. A nil Before is a creation, a nil After
// the end of the object.
type simWrite struct {
	RV            int
	Kind          simKind
	By            string // controller, karpenter, scheduler, kubelet, person
	Before, After client.Object
}

// Of is the object as it was, or as it came to be.
func (w simWrite) Of() client.Object {
	if w.Before != nil {
		return w.Before
	}
	return w.After
}

// simServer models an API server: every write moves one counter on, is refused for any
// version but the one it was decided on, and is kept in the history of its kind. A version
// that was stored never changes, so reads share it.
type simServer struct {
	now      time.Time
	rv, uids int
	objects  [simKinds][]client.Object // in order of creation
	history  [simKinds][]simWrite
	observe  func(simWrite)
}

func (s *simServer) get(k simKind, name string) client.Object {
	for _, o := range s.objects[k] {
		if o.GetName() == name {
			return o
		}
	}
	return nil
}

// create gives a new object its identity. Times are whole seconds, as on a real server.
func (s *simServer) create(by string, k simKind, o client.Object) error {
	if s.get(k, o.GetName()) != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: k.String()}, o.GetName())
	}
	s.uids++
	o.SetUID(types.UID("uid-" + strconv.Itoa(s.uids)))
	if p, ok := o.(*corev1.Pod); ok {
		p.Status.Phase = corev1.PodPending
	}
	o.SetCreationTimestamp(metav1.NewTime(s.now.Truncate(time.Second)))
	s.store(simWrite{Kind: k, By: by, After: o})
	return nil
}

// change stores what edit makes of a copy of the object.
func (s *simServer) change(by string, k simKind, o client.Object, edit func(client.Object)) client.Object {
	next := o.DeepCopyObject().(client.Object)
	edit(next)
	s.store(simWrite{Kind: k, By: by, Before: o, After: next})
	return next
}

// remove deletes an object: at once, or, where something has to let it go first, by a
// deletionTimestamp.
func (s *simServer) remove(by string, k simKind, o client.Object, atOnce bool) {
	held := len(o.GetFinalizers()) > 0 || k == simPods && !atOnce
	switch {
	case held && o.GetDeletionTimestamp() != nil: // nothing changes
	case held:
		at := metav1.NewTime(s.now.Truncate(time.Second))
		s.change(by, k, o, func(o client.Object) { o.SetDeletionTimestamp(&at) })
	default:
		s.store(simWrite{Kind: k, By: by, Before: o})
	}
}

// end takes an object away, whoever held it.
func (s *simServer) end(by string, k simKind, o client.Object) {
	s.store(simWrite{Kind: k, By: by, Before: o})
}

func (s *simServer) store(w simWrite) {
	s.rv++
	w.RV = s.rv
	list := s.objects[w.Kind]
	if w.After != nil {
		w.After.SetResourceVersion(strconv.Itoa(s.rv))
	}
	s.objects[w.Kind] = replaced(list, w)
	s.history[w.Kind] = append(s.history[w.Kind], w)
	if s.observe != nil {
		s.observe(w)
	}
}

// replaced is the list after the write. The list itself stays as it is: a reader may hold it.
func replaced(list []client.Object, w simWrite) []client.Object {
	next := make([]client.Object, 0, len(list)+1)
	for _, o := range list {
		if w.Before == nil || o.GetUID() != w.Before.GetUID() {
			next = append(next, o)
		} else if w.After != nil {
			next = append(next, w.After)
		}
	}
	if w.Before == nil {
		next = append(next, w.After)
	}
	return next
}

// patch applies a JSON merge patch of annotations and spec.unschedulable.
func (s *simServer) patch(by string, k simKind, name string, body []byte) (client.Object, error) {
	var p struct {
		Metadata struct {
			UID             types.UID          `json:"uid"`
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Unschedulable *bool `json:"unschedulable"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	o := s.get(k, name)
	if err := precondition(k, name, o, &p.Metadata.UID, &p.Metadata.ResourceVersion); err != nil {
		return nil, err
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, v := range p.Metadata.Annotations {
		if v == nil {
			delete(annotations, key)
		} else {
			annotations[key] = *v
		}
	}
	cordoned := func(o client.Object) bool { n, ok := o.(*corev1.Node); return ok && n.Spec.Unschedulable }
	cordon := cordoned(o)
	if p.Spec.Unschedulable != nil {
		cordon = *p.Spec.Unschedulable
	}
	if maps.Equal(annotations, o.GetAnnotations()) && cordon == cordoned(o) {
		return o, nil // what changes nothing is no write
	}
	return s.change(by, k, o, func(o client.Object) {
		o.SetAnnotations(annotations)
		if n, ok := o.(*corev1.Node); ok {
			n.Spec.Unschedulable = cordon
		}
	}), nil
}

func precondition(k simKind, name string, o client.Object, uid *types.UID, rv *string) error {
	resource := schema.GroupResource{Resource: k.String()}
	switch {
	case o == nil:
		return apierrors.NewNotFound(resource, name)
	case uid != nil && *uid != "" && *uid != o.GetUID():
		return apierrors.NewConflict(resource, name, errors.New("the UID is another"))
	case rv != nil && *rv != "" && *rv != o.GetResourceVersion():
		return apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
	}
	return nil
}

// kindOf is the kind of an object or a list.
func kindOf(o any) simKind {
	switch o := o.(type) {
	case *karpv1.NodePool, *karpv1.NodePoolList:
		return simPools
	case *karpv1.NodeClaim, *karpv1.NodeClaimList:
		return simClaims
	case *corev1.Node, *corev1.NodeList:
		return simNodes
	case *corev1.Pod, *corev1.PodList:
		return simPods
	case *v1alpha1.RotationPolicy, *v1alpha1.RotationPolicyList:
		return simPolicies
	case *metav1.PartialObjectMetadata:
		for k, name := range simKindNames {
			if name == o.Kind {
				return simKind(k)
			}
		}
	}
	panic(fmt.Sprintf("the model has no %T", o))
}

// read copies a stored object into the caller's.
func read(o, into client.Object) {
	switch into := into.(type) {
	case *karpv1.NodePool:
		*into = *o.(*karpv1.NodePool)
	case *karpv1.NodeClaim:
		*into = *o.(*karpv1.NodeClaim)
	case *corev1.Node:
		*into = *o.(*corev1.Node)
	case *corev1.Pod:
		*into = *o.(*corev1.Pod)
	case *v1alpha1.RotationPolicy:
		*into = *o.(*v1alpha1.RotationPolicy)
	default:
		panic(fmt.Sprintf("the model does not read %T", into))
	}
}

// list fills the caller's list with what the options select.
func list(objects []client.Object, into client.ObjectList, opts []client.ListOption) {
	var o client.ListOptions
	o.ApplyOptions(opts)
	node := nodeAsked(opts)
	for _, x := range objects {
		if o.Namespace != "" && x.GetNamespace() != o.Namespace {
			continue
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(x.GetLabels())) {
			continue
		}
		if p, ok := x.(*corev1.Pod); ok && node != "" && p.Spec.NodeName != node {
			continue
		}
		switch into := into.(type) {
		case *karpv1.NodePoolList:
			into.Items = append(into.Items, *x.(*karpv1.NodePool))
		case *karpv1.NodeClaimList:
			into.Items = append(into.Items, *x.(*karpv1.NodeClaim))
		case *corev1.NodeList:
			into.Items = append(into.Items, *x.(*corev1.Node))
		case *corev1.PodList:
			into.Items = append(into.Items, *x.(*corev1.Pod))
		case *v1alpha1.RotationPolicyList:
			into.Items = append(into.Items, *x.(*v1alpha1.RotationPolicy))
		}
	}
}

// nodeAsked is the node whose pods alone are asked for.
func nodeAsked(opts []client.ListOption) string {
	var o client.ListOptions
	if o.ApplyOptions(opts); o.FieldSelector == nil {
		return ""
	}
	node, _ := o.FieldSelector.RequiresExactMatch("spec.nodeName")
	return node
}
