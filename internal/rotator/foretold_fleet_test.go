package rotator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// fleet is a cluster in which the real controller runs, and a Karpenter that is as punctual as
// plans take it to be. Until the plan is made it need not be: some of what it launches never
// comes up.
type fleet struct {
	api      *simServer
	punctual bool
	duds     []bool // of the launches to come; none of those after the last
	writes   int    // of the controller, from its first anchor on, before it is cut off; negative if it is not
	agenda   []deed
	started  map[string]time.Time // when the rotation of a pool began
	turns    map[string][]rotation.Turn
	heirs    map[string]string // of NodeClaims: to where their pods go
	to       time.Time
}

// deed is something that Karpenter is about to do.
type deed struct {
	at       time.Time
	what, on string    // launch for a placeholder; surge, end: a NodeClaim
	asked    types.UID // surge: the placeholder
}

var errCutOff = errors.New("cut off")

// fleetClient is all that the controller sees of a fleet. It reads what is there.
type fleetClient struct {
	client.Client
	*fleet
}

func (c fleetClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o := c.api.get(kindOf(into), key.Name)
	if o == nil {
		return precondition(kindOf(into), key.Name, nil, nil, nil)
	}
	read(o, into)
	return nil
}

func (c fleetClient) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list(c.api.objects[kindOf(into)], into, opts)
	return nil
}

func (c fleetClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return c.write(func() error { return c.api.create("controller", kindOf(o), o.DeepCopyObject().(client.Object)) })
}

func (c fleetClient) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	var d client.DeleteOptions
	d.ApplyOptions(opts)
	return c.write(func() error {
		on := c.api.get(kindOf(o), o.GetName())
		if err := precondition(kindOf(o), o.GetName(), on, d.Preconditions.UID, d.Preconditions.ResourceVersion); err != nil {
			return err
		}
		c.api.remove("controller", kindOf(o), on, true)
		return nil
	})
}

func (c fleetClient) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	return c.write(func() error {
		after, err := c.api.patch("controller", kindOf(o), o.GetName(), body)
		if err == nil {
			o.SetResourceVersion(after.GetResourceVersion())
		}
		return err
	})
}

func (f *fleet) write(do func() error) error {
	if f.writes == 0 {
		return errCutOff
	}
	err := do()
	if len(f.started) > 0 {
		f.writes--
	}
	return err
}

// controller is a new process of it.
func (f *fleet) controller() *Rotator {
	c := fleetClient{fleet: f}
	return &Rotator{
		Client: c, Live: c, Namespace: "node-rotation-system", PlaceholderImage: "pause", Now: func() time.Time { return f.api.now },
		policies: &policies{}, announce: newAnnouncer(&spoken{}, newMetrics(prometheus.NewRegistry())),
	}
}

// heard notes what follows from a write of the controller.
func (f *fleet) heard(w simWrite) {
	if w.By != "controller" {
		return
	}
	switch o := w.After.(type) {
	case *karpv1.NodePool:
		if w.Before.GetAnnotations()[rotation.AnnotationActive] == "" && o.Annotations[rotation.AnnotationActive] != "" {
			f.started[o.Name] = f.api.now
		}
	case *corev1.Pod:
		f.agenda = append(f.agenda, deed{f.api.now, "launch", o.Name, o.UID})
	case *karpv1.NodeClaim:
		if o.DeletionTimestamp == nil || w.Before.GetDeletionTimestamp() != nil {
			return
		}
		pool := f.pool(o.Labels[karpv1.NodePoolLabelKey])
		if deadline, expires := deadlineOf(o); expires && pool.Annotations[rotation.AnnotationActive] == o.Name {
			f.turns[pool.Name] = append(f.turns[pool.Name], f.turn(pool, o.Name, deadline))
		}
		f.goes(o, f.api.now)
	}
}

func (f *fleet) turn(pool *karpv1.NodePool, claim string, deadline time.Time) rotation.Turn {
	mode := cmp.Or(pool.Annotations[rotation.AnnotationMode], rotation.ModeSurge)
	o, _ := f.governs(pool).Windows.At(f.started[pool.Name])
	return rotation.Turn{NodeClaim: claim, Deadline: deadline, Start: f.started[pool.Name], Occurrence: o, Mode: mode}
}

func deadlineOf(c *karpv1.NodeClaim) (time.Time, bool) {
	if c.Spec.ExpireAfter.Duration == nil {
		return time.Time{}, false
	}
	return c.CreationTimestamp.Add(*c.Spec.ExpireAfter.Duration), true
}

func (f *fleet) pool(name string) *karpv1.NodePool {
	return f.api.get(simPools, name).(*karpv1.NodePool)
}

func (f *fleet) governs(pool *karpv1.NodePool) *rotation.Policy {
	var all v1alpha1.RotationPolicyList
	list(f.api.objects[simPolicies], &all, nil)
	return (&policies{}).govern(pool.Labels, all.Items, f.api.now).Policy
}

// estimates are how long a launch and a drain take.
func (f *fleet) estimates(c *karpv1.NodeClaim) (launch, drain time.Duration) {
	p := f.governs(f.pool(c.Labels[karpv1.NodePoolLabelKey]))
	if p == nil {
		return time.Minute, time.Minute
	}
	launch = min(p.ReadyTimeout, 5*time.Minute)
	if p.ProvisioningEstimate != nil {
		launch = min(p.ReadyTimeout, *p.ProvisioningEstimate)
	}
	var grace *time.Duration
	if g := c.Spec.TerminationGracePeriod; g != nil {
		grace = &g.Duration
	}
	return launch, p.Throughput(grace).TRotEst - launch
}

// goes plans the end of a NodeClaim that is being deleted since then.
func (f *fleet) goes(c *karpv1.NodeClaim, since time.Time) {
	_, drain := f.estimates(c)
	at := since.Add(drain)
	if at.Before(f.api.now) {
		at = f.api.now
	}
	f.agenda = append(f.agenda, deed{at, "end", c.Name, ""})
}

// born is a NodeClaim that replaces another one, with a name that plans give it, too.
func (f *fleet) born(after *karpv1.NodeClaim) *karpv1.NodeClaim {
	base, generation, _ := strings.Cut(after.Name, "+")
	n, _ := strconv.Atoi(generation)
	name := ""
	for name == "" || f.api.get(simClaims, name) != nil {
		n++
		name = fmt.Sprintf("%s+%d", base, n)
	}
	pool := f.pool(after.Labels[karpv1.NodePoolLabelKey])
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: after.Labels, Finalizers: after.Finalizers}}
	c.Spec.ExpireAfter, c.Spec.TerminationGracePeriod = pool.Spec.Template.Spec.ExpireAfter, pool.Spec.Template.Spec.TerminationGracePeriod
	c.Status.Allocatable = after.Status.Allocatable
	_ = f.api.create("karpenter", simClaims, c)
	return c
}

// register has a NodeClaim come up, with a Node if it has none.
func (f *fleet) register(name string) {
	c, _ := f.api.get(simClaims, name).(*karpv1.NodeClaim)
	if c == nil || c.DeletionTimestamp != nil {
		return
	}
	node := cmp.Or(c.Status.NodeName, c.Name)
	up := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if n := f.api.get(simNodes, node); n != nil {
		f.api.change("karpenter", simNodes, n, func(o client.Object) { o.(*corev1.Node).Status.Conditions = up })
	} else {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: maps.Clone(c.Labels)}, Status: corev1.NodeStatus{Conditions: up}}
		n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: c.Name, UID: c.UID}}
		_ = f.api.create("karpenter", simNodes, n)
	}
	f.api.change("karpenter", simClaims, c, func(o client.Object) {
		c := o.(*karpv1.NodeClaim)
		c.Status.NodeName, c.Status.Conditions = node, []status.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	})
}

// surge has a NodeClaim come up, with the placeholder that it was launched for.
func (f *fleet) surge(name string, asked types.UID) {
	f.register(name)
	c, _ := f.api.get(simClaims, name).(*karpv1.NodeClaim)
	if c == nil || c.DeletionTimestamp != nil {
		return
	}
	pool, node := f.pool(c.Labels[karpv1.NodePoolLabelKey]), c.Status.NodeName
	p, _ := f.api.get(simPods, rotation.PlaceholderName(pool.Annotations[rotation.AnnotationActive])).(*corev1.Pod)
	if p != nil && p.UID == asked && c.Name != pool.Annotations[rotation.AnnotationActive] && (p.Spec.NodeName == "" || p.Spec.NodeName == node) {
		f.api.change("kubelet", simPods, p, func(o client.Object) {
			o.(*corev1.Pod).Spec.NodeName, o.(*corev1.Pod).Status.Phase = node, corev1.PodRunning
		})
	}
}

// end takes away a NodeClaim that is drained. Its pods go to where room was made for them.
func (f *fleet) end(name string) {
	c, _ := f.api.get(simClaims, name).(*karpv1.NodeClaim)
	if c == nil {
		return
	}
	if n := f.api.get(simNodes, c.Status.NodeName); n != nil {
		heir, _ := f.api.get(simClaims, f.heirs[name]).(*karpv1.NodeClaim)
		for _, o := range f.api.objects[simPods] {
			if o.(*corev1.Pod).Spec.NodeName != n.GetName() {
				continue
			}
			f.api.end("karpenter", simPods, o)
			if heir != nil && heir.Status.NodeName != "" {
				_ = f.api.create("workload", simPods, pod(o.GetName(), heir.Status.NodeName, "1500m"))
			}
		}
		f.api.end("karpenter", simNodes, n)
	}
	f.api.end("karpenter", simClaims, c)
}

// karpenter does what is due.
func (f *fleet) karpenter() {
	for {
		slices.SortStableFunc(f.agenda, func(a, b deed) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.on, b.on)) })
		if len(f.agenda) == 0 || f.agenda[0].at.After(f.api.now) {
			break
		}
		d := f.agenda[0]
		f.agenda = f.agenda[1:]
		switch d.what {
		case "launch":
			f.launch(d.on, f.api.now)
		case "surge":
			f.surge(d.on, d.asked)
		case "end":
			f.end(d.on)
		}
	}
	var due []*karpv1.NodeClaim
	for _, o := range f.api.objects[simClaims] {
		c := o.(*karpv1.NodeClaim)
		if deadline, expires := deadlineOf(c); expires && c.DeletionTimestamp == nil && !f.api.now.Before(deadline) {
			due = append(due, c)
		}
	}
	for _, c := range due {
		f.expire(c)
	}
}

// launch makes room for a placeholder that was seen then.
func (f *fleet) launch(placeholder string, seen time.Time) {
	p, _ := f.api.get(simPods, placeholder).(*corev1.Pod)
	if p == nil || p.Status.Phase == corev1.PodRunning {
		return
	}
	c, _ := f.api.get(simClaims, p.Annotations[rotation.AnnotationSurgeFor]).(*karpv1.NodeClaim)
	if c == nil {
		return
	}
	surge := f.born(c)
	f.heirs[c.Name] = surge.Name
	if len(f.duds) > 0 && !f.punctual {
		dud := f.duds[0]
		if f.duds = f.duds[1:]; dud {
			return
		}
	}
	launch, _ := f.estimates(c)
	f.agenda = append(f.agenda, deed{seen.Add(launch), "surge", surge.Name, p.UID})
}

func (f *fleet) expire(c *karpv1.NodeClaim) {
	pool := f.pool(c.Labels[karpv1.NodePoolLabelKey])
	if deadline, _ := deadlineOf(c); deadline.Before(f.to) {
		f.turns[pool.Name] = append(f.turns[pool.Name], rotation.Turn{NodeClaim: c.Name, Deadline: deadline, Start: deadline, Lost: "lost"})
	}
	f.api.remove("karpenter", simClaims, c, false)
	f.goes(c, f.api.now)
	if pool.Annotations[rotation.AnnotationActive] != c.Name {
		f.heirs[c.Name] = f.born(c).Name
		f.register(f.heirs[c.Name])
	}
}

// run has the controller work until an instant, and then on what it is amid. It reports whether
// it was cut off.
func (f *fleet) run(t *rapid.T, to time.Time) bool {
	r := f.controller()
	ctx := log.IntoContext(context.Background(), logr.Discard())
	for range 100_000 {
		f.karpenter()
		var next time.Time
		sooner := func(at time.Time) {
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		active := false
		for _, o := range f.api.objects[simPools] {
			name := o.GetName()
			for passes := 0; !f.over(name, to); passes++ {
				rv := f.api.rv
				_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
				if f.writes == 0 {
					return true
				}
				if err != nil || passes > 50 {
					t.Fatalf("%s at %s, after %d passes: %v", name, f.api.now, passes, err)
				}
				if rv == f.api.rv {
					break
				}
				f.karpenter()
			}
			if f.over(name, to) {
				continue
			}
			active = true
			s, err := r.observe(ctx, r.Live, name, f.api.now)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.observePods(ctx, r.Live, s, f.api.now); err != nil {
				t.Fatal(err)
			}
			sooner(rotation.Decide(*s, f.api.now).Wake) // the controller is taken at its word
			for _, o := range f.api.objects[simClaims] {
				c := o.(*karpv1.NodeClaim)
				if deadline, expires := deadlineOf(c); expires && c.DeletionTimestamp == nil && c.Labels[karpv1.NodePoolLabelKey] == name {
					sooner(deadline)
				}
			}
		}
		if !active {
			return false
		}
		for _, d := range f.agenda {
			sooner(d.at)
		}
		if next.IsZero() || f.api.now.Before(to) && next.After(to) {
			next = to
		}
		if next.Before(f.api.now) {
			t.Fatalf("at %s nothing is left to happen:\n%s", f.api.now, f)
		}
		f.api.now = next
	}
	t.Fatalf("no end at %s", f.api.now)
	return false
}

// String is what matters of all objects, for people.
func (f *fleet) String() string {
	var b strings.Builder
	for _, objects := range f.api.objects {
		for _, o := range objects {
			fmt.Fprintf(&b, "%T %s created %s deleted %v annotations %v", o, o.GetName(), o.GetCreationTimestamp().UTC(), o.GetDeletionTimestamp(), o.GetAnnotations())
			switch o := o.(type) {
			case *karpv1.NodeClaim:
				fmt.Fprintf(&b, " on %q expires after %v, grace %v, ready %t", o.Status.NodeName, o.Spec.ExpireAfter.Duration, o.Spec.TerminationGracePeriod, readyClaim(o))
			case *corev1.Pod:
				fmt.Fprintf(&b, " on %q %s", o.Spec.NodeName, o.Status.Phase)
			}
			fmt.Fprintln(&b)
		}
	}
	fmt.Fprintf(&b, "agenda %v", f.agenda)
	return b.String()
}

// over says that the story of a pool has been told.
func (f *fleet) over(pool string, to time.Time) bool {
	return !f.api.now.Before(to) && f.pool(pool).Annotations[rotation.AnnotationActive] == ""
}

// settle has everything come true, from now on, that a plan assumes: Karpenter is in time, and
// what is not Ready yet, and not due, will be.
func (f *fleet) settle(plans []Plan) {
	f.punctual, f.agenda, f.turns, f.heirs = true, nil, map[string][]rotation.Turn{}, map[string]string{}
	surges := map[string]bool{}
	for _, o := range f.api.objects[simPods] {
		if p := o.(*corev1.Pod); isPlaceholder(p) {
			surges[f.awaited(p)] = true
		}
	}
	for _, p := range plans {
		for _, l := range p.Lives {
			if l.Standing == rotation.NotDue && !surges[l.NodeClaim] {
				f.register(l.NodeClaim)
			}
		}
	}
	for _, o := range f.api.objects[simClaims] {
		if c := o.(*karpv1.NodeClaim); c.DeletionTimestamp != nil {
			f.goes(c, c.DeletionTimestamp.Time)
		}
	}
	for _, o := range f.api.objects[simPools] {
		pool := o.(*karpv1.NodePool)
		f.started[pool.Name] = f.api.now
		c, _ := f.api.get(simClaims, pool.Annotations[rotation.AnnotationActive]).(*karpv1.NodeClaim)
		if c == nil {
			continue
		}
		f.heirs[c.Name] = cmp.Or(f.heirs[c.Name], c.Annotations[rotation.AnnotationSurgeClaim])
		if at, err := time.Parse(time.RFC3339, c.Annotations[rotation.AnnotationStartedAt]); err == nil {
			f.started[pool.Name] = at
		}
		if deadline, expires := deadlineOf(c); expires && c.DeletionTimestamp != nil && c.Annotations[rotation.AnnotationState] == rotation.StateDraining {
			f.turns[pool.Name] = append(f.turns[pool.Name], f.turn(pool, c.Name, deadline))
		}
	}
}

// awaited is the NodeClaim that makes room for a placeholder, which comes up when it should, or
// now if that has passed.
func (f *fleet) awaited(p *corev1.Pod) string {
	c, _ := f.api.get(simClaims, p.Annotations[rotation.AnnotationSurgeFor]).(*karpv1.NodeClaim)
	if c == nil {
		return ""
	}
	var surge *karpv1.NodeClaim
	for _, o := range f.api.objects[simClaims] {
		o := o.(*karpv1.NodeClaim)
		switch {
		case p.Spec.NodeName != "" && o.Status.NodeName == p.Spec.NodeName:
			surge = o
		case p.Spec.NodeName != "" || o.Labels[karpv1.NodePoolLabelKey] != c.Labels[karpv1.NodePoolLabelKey], o.Status.NodeName != "", o.DeletionTimestamp != nil, o.CreationTimestamp.Time.Before(p.CreationTimestamp.Time):
		case surge == nil, cmp.Or(o.CreationTimestamp.Compare(surge.CreationTimestamp.Time), cmp.Compare(o.Name, surge.Name)) > 0:
			surge = o
		}
	}
	if surge == nil {
		f.launch(p.Name, p.CreationTimestamp.Time)
		return ""
	}
	f.heirs[c.Name] = surge.Name
	launch, _ := f.estimates(c)
	at := p.CreationTimestamp.Add(launch)
	if at.Before(f.api.now) {
		at = f.api.now
	}
	f.agenda = append(f.agenda, deed{at, "surge", surge.Name, p.UID})
	return surge.Name
}

// photo is what a plan is made of.
func (f *fleet) photo() Objects {
	var o Objects
	var policies v1alpha1.RotationPolicyList
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	var nodes corev1.NodeList
	var pods corev1.PodList
	for _, l := range []client.ObjectList{&policies, &pools, &claims, &nodes, &pods} {
		list(f.api.objects[kindOf(l)], l, nil)
	}
	o.Policies, o.NodePools, o.NodeClaims, o.Nodes, o.Pods = policies.Items, pools.Items, claims.Items, nodes.Items, pods.Items
	return o
}
