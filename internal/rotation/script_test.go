package rotation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tasuki-io/tasuki/internal/window"
)

// The verbs of a script that build the world, and those that change it. testdata/README
// lists them.

const day = 24 * time.Hour

// testPolicy is a RotationPolicy with every default, open on these windows, each written
// "Wed,Sat 02:00-06:00 Asia/Tokyo".
func testPolicy(from time.Time, windows ...string) (*Policy, error) {
	p := &Policy{
		Name: "nightly", Chances: 2,
		ReadyTimeout: 15 * time.Minute, CooldownAfter: 10 * time.Minute, FailurePause: 10 * time.Minute, RetryBackoff: 30 * time.Minute,
		Required: []string{corev1.LabelTopologyZone, corev1.LabelArchStable, "karpenter.sh/capacity-type"},
	}
	var rules []window.Rule
	for _, w := range windows {
		f := strings.Fields(w)
		if len(f) != 3 {
			return nil, fmt.Errorf("window %q: want days, start-end and zone", w)
		}
		start, end, _ := strings.Cut(f[1], "-")
		days := strings.Split(f[0], ",")
		if f[0] == "daily" {
			days = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
		}
		rule, err := window.ParseRule(f[2], days, start, end)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	p.Windows = window.NewSchedule(rules...)
	p.Measure = p.Windows.Measure(from.Truncate(day))
	return p, nil
}

func (r *transcriber) playPolicy(l *line) error {
	windows := "Wed,Sat 02:00-06:00 UTC"
	if v, ok := l.option("windows"); ok {
		windows = v
	}
	var entries []string
	if windows != "" {
		entries = strings.Split(windows, "; ")
	}
	p, err := testPolicy(r.now, entries...)
	if err != nil {
		return err
	}
	p.Invalid, _ = l.option("invalid")
	p.ForcefulFallback, p.WholeNodeReservation = l.flag("fallback"), l.flag("wholeNode")
	if v, ok := l.option("chances"); ok {
		if _, err := fmt.Sscan(v, &p.Chances); err != nil {
			return err
		}
	}
	for key, to := range map[string]*[]string{"required": &p.Required, "preferred": &p.Preferred} {
		if v, ok := l.option(key); ok {
			*to = strings.Split(v, ",")
		}
	}
	r.Governance = Governance{Policy: p}
	return errors.Join(
		l.duration("ageThreshold", &p.AgeThreshold), l.duration("readyTimeout", &p.ReadyTimeout),
		l.duration("cooldownAfter", &p.CooldownAfter), l.duration("failurePause", &p.FailurePause),
		l.duration("retryBackoff", &p.RetryBackoff),
		l.optional("drainEstimate", "unset", &p.DrainEstimate), l.optional("provisioningEstimate", "unset", &p.ProvisioningEstimate),
	)
}

func (r *transcriber) playUngoverned(*line) error {
	r.Governance = Governance{}
	return nil
}

func (r *transcriber) playConflict(l *line) error {
	r.Governance = Governance{Conflict: l.words}
	l.words = nil
	return nil
}

func (r *transcriber) playPool(l *line) error {
	p := NodePool{Object: r.object(KindNodePool, l.next()), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour), Static: l.flag("static")}
	p.Limits, p.InUse = l.resources("limits."), l.resources("used.")
	if v, ok := l.option("taint"); ok {
		key, effect, _ := strings.Cut(v, ":")
		p.Taints = append(p.Taints, corev1.Taint{Key: key, Value: "true", Effect: corev1.TaintEffect(effect)})
	}
	err := requirements(l, &p.Requirements)
	err = errors.Join(err, l.optional("expireAfter", "Never", &p.ExpireAfter), l.optional("grace", "unset", &p.GracePeriod))
	r.NodePool = p
	return err
}

// requirements takes require="KEY OPERATOR VALUE,VALUE; ...".
func requirements(l *line, to *[]Requirement) error {
	v, ok := l.option("require")
	if !ok {
		return nil
	}
	for _, text := range strings.Split(v, "; ") {
		f := strings.Fields(text)
		if len(f) < 2 {
			return fmt.Errorf("requirement %q: want a key, an operator and values", text)
		}
		q := Requirement{Key: labelKey(f[0]), Operator: f[1]}
		if len(f) > 2 {
			q.Values = strings.Split(f[2], ",")
		}
		*to = append(*to, q)
	}
	return nil
}

func labelKey(key string) string {
	switch key {
	case "zone":
		return corev1.LabelTopologyZone
	case "arch":
		return corev1.LabelArchStable
	case "capacity":
		return "karpenter.sh/capacity-type"
	}
	return key
}

func (r *transcriber) playClaim(l *line) error {
	name := l.next()
	if name == "" || r.claim(name) != nil {
		return errors.New("want the name of a new claim")
	}
	c := NodeClaim{Object: Object{Name: name}, Created: r.now, ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour), Ready: !l.flag("notReady")}
	c.NodeName, _ = l.option("node")
	var age time.Duration
	err := errors.Join(
		l.optional("expireAfter", "Never", &c.ExpireAfter), l.optional("grace", "unset", &c.GracePeriod),
		l.duration("age", &age), requirements(l, &c.Requirements),
	)
	c.Created = r.now.Add(-age)
	if v, ok := l.option("born"); ok {
		if c.Created, err = time.Parse(time.RFC3339, v); err != nil {
			return err
		}
	}
	c.Ready = c.Ready && c.NodeName != ""
	c.Allocatable = l.resources("allocatable.")
	r.join(c)
	if real := l.resources("node."); real != nil {
		r.change(c.NodeName, func(n *Node) { n.Allocatable = real })
	}
	for _, k := range []string{"zone", "arch", "capacity"} {
		if v, ok := l.option(k); ok {
			r.Nodes[c.NodeName].Labels[labelKey(k)] = v
		}
	}
	return err
}

func (r *transcriber) playPod(l *line) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: l.next(), Namespace: "default"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	node, _ := l.option("on")
	if _, ok := r.Nodes[node]; !ok {
		return fmt.Errorf("there is no node %q", node)
	}
	if v, ok := l.option("owner"); ok {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: v}}
	}
	if l.flag("mirror") {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	if l.flag("finished") {
		pod.Status.Phase = corev1.PodSucceeded
	}
	if l.flag("pinned") {
		pod.Spec.NodeSelector = map[string]string{labelHostname: node}
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: l.resources("")}}}
	r.Pods[node] = append(r.Pods[node], pod)
	return nil
}

func (r *transcriber) playRegister(l *line) error {
	claim := l.next()
	node, _ := l.option("node")
	if r.claim(claim) == nil || node == "" {
		return errors.New("want a claim and node=")
	}
	r.register(claim, node, !l.flag("notReady"))
	return nil
}

func (r *transcriber) playDelete(l *line) error {
	claim := l.next()
	if r.claim(claim) == nil {
		return fmt.Errorf("there is no claim %q", claim)
	}
	r.remove(claim)
	return nil
}

func (r *transcriber) playGone(l *line) error {
	claim := l.next()
	if r.claim(claim) == nil {
		return fmt.Errorf("there is no claim %q", claim)
	}
	r.finalize(claim)
	return nil
}

func (r *transcriber) playNode(l *line) error {
	name := l.next()
	if _, ok := r.Nodes[name]; !ok {
		return fmt.Errorf("there is no node %q", name)
	}
	for state, by := range map[string]func(*Node){
		"ready":     func(n *Node) { n.Ready = true },
		"notReady":  func(n *Node) { n.Ready = false },
		"deleting":  func(n *Node) { n.Deleting = true },
		"disrupted": func(n *Node) { n.Taints = append(n.Taints, corev1.Taint{Key: taintDisrupt, Effect: "NoSchedule"}) },
		"undisrupted": func(n *Node) {
			n.Taints = slices.DeleteFunc(n.Taints, func(t corev1.Taint) bool { return t.Key == taintDisrupt })
		},
	} {
		if l.flag(state) {
			r.change(name, by)
		}
	}
	return nil
}

func (r *transcriber) playCordon(l *line) error   { return r.schedulable(l.next(), false) }
func (r *transcriber) playUncordon(l *line) error { return r.schedulable(l.next(), true) }

func (r *transcriber) schedulable(node string, yes bool) error {
	if _, ok := r.Nodes[node]; !ok {
		return fmt.Errorf("there is no node %q", node)
	}
	r.change(node, func(n *Node) { n.Unschedulable = !yes })
	return nil
}

func (r *transcriber) playAnnotate(l *line) error {
	set := map[string]string{}
	for _, k := range l.order {
		v, _ := l.option(k)
		set[longKey(k)] = v
	}
	return r.annotate(l.next(), set, nil)
}

func (r *transcriber) playUnannotate(l *line) error {
	name := l.next()
	var keys []string
	for _, k := range l.words {
		keys = append(keys, longKey(k))
	}
	l.words = nil
	return r.annotate(name, nil, keys)
}

func longKey(key string) string {
	if strings.Contains(key, "/") {
		return key
	}
	return prefix + key
}

// annotate edits an object the way a person does with kubectl: without asking.
func (r *transcriber) annotate(name string, set map[string]string, unset []string) error {
	if name == "pool" {
		edit(&r.NodePool.Annotations, set, unset)
		r.touch(&r.NodePool.Object)
		return nil
	}
	if _, ok := r.Nodes[name]; ok {
		r.change(name, func(n *Node) { edit(&n.Annotations, set, unset) })
		return nil
	}
	c := r.claim(name)
	if c == nil {
		return fmt.Errorf("there is no object %q", name)
	}
	edit(&c.Annotations, set, unset)
	r.touch(&c.Object)
	return nil
}

func (r *transcriber) playPlaceholder(l *line) error {
	if r.Placeholder == nil {
		return errors.New("there is no placeholder")
	}
	switch what := l.next(); what {
	case "bound", "running":
		phase := map[string]corev1.PodPhase{"bound": corev1.PodPending, "running": corev1.PodRunning}[what]
		node := l.next()
		if node == "" {
			node = r.Placeholder.NodeName
		}
		if node == "" {
			return errors.New("on which node")
		}
		r.bind(node, phase)
	case "unschedulable":
		r.Placeholder.Waiting = Waiting{"Unschedulable", l.next()}
	case "preempted":
		r.Placeholder.Deleting = true
	case "failed":
		r.Placeholder.Phase = corev1.PodFailed
	case "gone":
		r.Placeholder = nil
	case "stuck":
		r.stuck = true
	case "unstuck":
		r.stuck = false
	default:
		return fmt.Errorf("unknown word %q", what)
	}
	return nil
}
