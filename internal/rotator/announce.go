package rotator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// announcer turns durable steps and changed answers into Events, log lines and metrics.
// It never announces a plan.
type announcer struct {
	events  recorder
	metrics *metrics

	mu   sync.Mutex
	told map[string]told // by NodePool, so that an unchanged answer is told once
}

type told struct {
	answer   string
	waiting  rotation.Waiting
	stuck    rotation.Stuck
	clamp    warned // of the attempt under way
	warnings map[warned]bool
	once     map[warned]bool // what is never told again
}

// warned is what makes a warning a new one: the same code on the same object, with another
// message unless that moves by itself.
type warned struct{ uid, code, message string }

func keyOf(w rotation.Warning, pool types.UID) warned {
	k := warned{uid: cmp.Or(w.On.UID, string(pool)), code: w.Code}
	if !w.Moving {
		k.message = w.Message
	}
	return k
}

func newAnnouncer(events recorder, m *metrics) *announcer {
	return &announcer{events: events, metrics: m, told: map[string]told{}}
}

// step announces one durable step of a pool's plan.
func (a *announcer) step(ctx context.Context, pool *metav1.PartialObjectMetadata, st rotation.Step) {
	l, f := log.FromContext(ctx), st.Facts
	switch st.Act {
	case rotation.ActClaimAnchor:
		deadline := f.Deadline.UTC().Format(time.RFC3339)
		if f.Requested != "" {
			l = l.WithValues("requested", f.Requested, "requestedBy", f.RequestedBy)
		}
		l.Info("rotation candidate selected", "nodeclaim", f.NodeClaim, "age", f.Age.Round(time.Second).String(),
			"eligible", f.Eligible, "deadline", deadline, "surgeless", f.Mode == rotation.ModeFallback)
		note := fmt.Sprintf("Rotating NodeClaim %s on node %s, whose deadline is %s", f.NodeClaim, f.Node, deadline)
		a.events.record(ctx, pool, corev1.EventTypeNormal, "RotationStarted", "Rotate", note+asked(f))
		if f.Mode == rotation.ModeFallback {
			a.metrics.fallback.WithLabelValues(pool.Name).Inc()
			a.events.record(ctx, pool, corev1.EventTypeWarning, "ForcefulFallback", "Rotate",
				fmt.Sprintf("NodeClaim %s is drained without a surge: its deadline %s is too near for one", f.NodeClaim, deadline))
		}
	case rotation.ActMarkPending:
		a.clamp(pool, warned{})
	case rotation.ActCreatePlaceholder:
		c := st.Create
		code, message := c.ClampNotice()
		l.Info("surge placeholder created", "nodeclaim", f.NodeClaim, "placeholder", c.Name, "requests", quantities(c.Requests),
			"pods", c.Sizing.Pods, "exclusions", c.Avoided, "clamp", code, "wholeNode", c.Sizing.Raised, "droppedRequirements", c.Dropped)
		if a.clamp(pool, warned{uid: c.For.UID, code: code}) && code != "" {
			kind := corev1.EventTypeWarning
			if code == "SurgeClamped" {
				kind = corev1.EventTypeNormal
			}
			a.events.record(ctx, claimRef(c.For), kind, code, "Rotate", message)
		}
	case rotation.ActRecordDraining:
		if f.SurgeNode != "" {
			l.Info("surge node ready", "nodeclaim", f.NodeClaim, "surgeNode", f.SurgeNode, "surgeWait", f.SurgeWait.String(), "surgePath", f.SurgePath)
			a.metrics.duration.WithLabelValues(pool.Name, "surge_wait").Observe(f.SurgeWait.Seconds())
		}
	case rotation.ActDeleteNodeClaim:
		l.Info("drain started", "nodeclaim", f.NodeClaim, "node", f.Node, "mode", f.Mode)
	case rotation.ActReapSurgeClaim:
		l.Info("surge claim reaped", "nodeclaim", f.NodeClaim, "surgeClaim", st.On.Name)
	case rotation.ActMarkFailed:
		a.metrics.completed.WithLabelValues(pool.Name, string(f.Outcome)).Inc()
		next := f.BackoffUntil.UTC().Format(time.RFC3339)
		l.Info("rotation attempt failed", "nodeclaim", f.NodeClaim, "reason", f.Reason, "readyTimeout", f.Timeout.String(),
			"retryCount", f.RetryCount, "backoffUntil", next, "surgeKept", f.Kept)
		kept := ""
		if f.Kept != "" {
			kept = ". " + f.Kept
		}
		a.events.record(ctx, claimRef(st.On), corev1.EventTypeWarning, "RotationFailed", "RollBack",
			fmt.Sprintf("The surge was not ready within %s: %s. Attempt %d is rolled back; the next one may start from %s%s", f.Timeout, f.Reason, f.RetryCount, next, kept))
	case rotation.ActMissWindow:
		opened := f.WindowOpened.UTC().Format(time.RFC3339)
		a.metrics.missed.WithLabelValues(pool.Name).Inc()
		l.Info("maintenance window closed with candidates unrotated", "windowOpenedAt", opened, "eligible", f.Eligible, "inBackoff", f.InBackoff)
		a.events.record(ctx, pool, corev1.EventTypeWarning, "WindowMissed", "Evaluate",
			fmt.Sprintf("The maintenance window seen open at %s has closed without a rotation: %d NodeClaims are eligible, %d in backoff", opened, f.Eligible, f.InBackoff))
	case rotation.ActReleaseAnchor:
		a.ended(ctx, pool, f)
	}
}

// asked tells of the person who asked for a rotation, if one did.
func asked(f rotation.Facts) string {
	when := map[string]string{rotation.RequestWindow: "in a window", rotation.RequestNow: "now"}[f.Requested]
	if when == "" {
		return ""
	}
	return fmt.Sprintf(", as %s asked to %s", cmp.Or(f.RequestedBy, "somebody"), when)
}

// clamp remembers what was said of the placeholder's size in this attempt, and reports
// whether it is news: one that is created again after a preemption is none.
func (a *announcer) clamp(pool *metav1.PartialObjectMetadata, said warned) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.told[pool.Name]
	news := t.clamp != said
	t.clamp = said
	a.told[pool.Name] = t
	return news
}

func (a *announcer) ended(ctx context.Context, pool *metav1.PartialObjectMetadata, f rotation.Facts) {
	l := log.FromContext(ctx)
	switch {
	case f.Outcome == rotation.Success:
		a.metrics.completed.WithLabelValues(pool.Name, string(f.Outcome)).Inc()
		if f.Drain > 0 { // zero is a drain whose start nobody can read
			a.metrics.duration.WithLabelValues(pool.Name, "drain").Observe(f.Drain.Seconds())
		}
		total := f.SurgeWait + f.Drain
		l.Info("rotation complete", "nodeclaim", f.NodeClaim, "mode", f.Mode, "drain", f.Drain.Round(time.Second).String(),
			"surgeNode", f.SurgeNode, "surgeWait", f.SurgeWait.String(), "surgePath", f.SurgePath, "total", total.Round(time.Second).String())
		a.events.record(ctx, pool, corev1.EventTypeNormal, "RotationCompleted", "Rotate",
			fmt.Sprintf("Rotated NodeClaim %s (%s) in %s", f.NodeClaim, how(f), total.Round(time.Second)))
	case f.Outcome == rotation.Gone:
		a.metrics.completed.WithLabelValues(pool.Name, string(f.Outcome)).Inc()
		l.Info("rotation expired, the NodeClaim was deleted before its surge was ready", "nodeclaim", f.NodeClaim)
	case f.Reason != "":
		l.Info("rotation rolled back, the pool lost its policy", "nodeclaim", f.NodeClaim, "reason", f.Reason)
		a.events.record(ctx, pool, corev1.EventTypeWarning, "GovernanceLost", "RollBack",
			fmt.Sprintf("The rotation of NodeClaim %s is rolled back, as no single RotationPolicy governs the NodePool any more (%s)", f.NodeClaim, f.Reason))
	}
}

// how says the mode of a rotation, and where its capacity came from if that is known.
func how(f rotation.Facts) string {
	if f.SurgePath == "" {
		return "mode " + f.Mode
	}
	return "mode " + f.Mode + ", surgePath " + f.SurgePath
}

// swept announces what the sweep has repaired, by what it took off.
func (a *announcer) swept(ctx context.Context, pool string, st rotation.Step) {
	l, f := log.FromContext(ctx), st.Facts
	switch st.Act {
	case rotation.ActDeletePlaceholder:
		l.Info("sweep: deleted an orphaned placeholder", "placeholder", st.On.Name, "nodeclaim", f.NodeClaim)
	case rotation.ActReleaseNode:
		did := "sweep: uncordoned a node"
		for _, k := range st.Clear {
			if k == rotation.AnnotationSurgeFor || k == rotation.AnnotationDoNotDisruptOwned {
				did = "sweep: unfroze a node"
			}
		}
		l.Info(did, "node", st.On.Name, "nodeclaim", f.NodeClaim)
	case rotation.ActFailOrphan:
		a.metrics.completed.WithLabelValues(pool, string(f.Outcome)).Inc()
		l.Info("sweep: failed an orphaned attempt", "nodeclaim", f.NodeClaim, "reason", f.Reason)
		a.events.record(ctx, claimRef(st.On), corev1.EventTypeWarning, "RotationFailed", "Sweep", "Found in "+f.Reason+": the attempt counts as failed")
	case rotation.ActClearOrphan:
		l.Info("sweep: cleared what an ended rotation left on the pool", "annotations", st.Clear)
	}
}

// answer announces what changed since the last answer for the pool: gauges always,
// Warnings and the reason for standing still on transition only.
func (a *announcer) answer(ctx context.Context, pool *metav1.PartialObjectMetadata, d rotation.Decision) {
	a.metrics.set(pool.Name, d)
	a.warn(ctx, pool, d.Warnings)
	now := told{waiting: d.Unscheduled, stuck: d.Stuck, warnings: map[warned]bool{}}
	for _, w := range d.Warnings {
		now.warnings[keyOf(w, pool.UID)] = true
	}
	if d.Active == "" {
		now.answer = string(d.Reason)
	}
	if d.Reason == rotation.ReasonNoCandidate || d.Reason == rotation.ReasonFrozen {
		now.answer += " " + d.Detail
	}
	a.mu.Lock()
	last := a.told[pool.Name]
	now.clamp, now.once = last.clamp, last.once
	a.told[pool.Name] = now
	a.mu.Unlock()

	l := log.FromContext(ctx)
	if now.answer != "" && now.answer != last.answer {
		l.Info("no rotation candidate", "reason", string(d.Reason), "detail", d.Detail)
	}
	// Its message counts nodes of the whole cluster and changes with any of them: it is told
	// once, and its reason when that changes.
	if now.waiting != (rotation.Waiting{}) && now.waiting.Reason != last.waiting.Reason {
		l.Info("surge placeholder is not schedulable", "nodeclaim", d.Active, "reason", now.waiting.Reason, "detail", now.waiting.Message)
	}
	if now.stuck != (rotation.Stuck{}) && now.stuck != last.stuck {
		hangs(ctx, d)
	}
}

func hangs(ctx context.Context, d rotation.Decision) {
	log.FromContext(ctx).Info("drain is stuck", "nodeclaim", d.Active, "since", d.Stuck.Since.UTC().Format(time.RFC3339), "detail", d.Detail)
}

// notBegun tells once of a drain that is not let begin. There is a plan to begin it, and so no
// answer that would tell it.
func (a *announcer) notBegun(ctx context.Context, pool *metav1.PartialObjectMetadata, d rotation.Decision) {
	a.mu.Lock()
	t := a.told[pool.Name]
	news := d.Stuck != (rotation.Stuck{}) && d.Stuck != t.stuck
	t.stuck = d.Stuck
	a.told[pool.Name] = t
	a.mu.Unlock()
	if news {
		hangs(ctx, d)
	}
}

// warn announces the warnings that are new. What is wrong is told before a plan is acted on:
// it is seen in the world, and not part of the plan.
func (a *announcer) warn(ctx context.Context, pool *metav1.PartialObjectMetadata, warnings []rotation.Warning) {
	for _, w := range warnings {
		if !a.news(pool, w) {
			continue
		}
		on := pool
		if w.On.Name != "" {
			on = claimRef(w.On)
		}
		a.events.record(ctx, on, corev1.EventTypeWarning, w.Code, "Evaluate", w.Message)
	}
}

// warnedOf reports whether precisely these warnings stand. A cache that lags would otherwise
// take one back, and give it again once it has caught up.
func (a *announcer) warnedOf(pool *metav1.PartialObjectMetadata, warnings []rotation.Warning) bool {
	now := map[warned]bool{}
	for _, w := range warnings {
		now[keyOf(w, pool.UID)] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Equal(now, a.told[pool.Name].warnings)
}

// news remembers a warning, and reports whether it had not been told yet.
func (a *announcer) news(pool *metav1.PartialObjectMetadata, w rotation.Warning) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, t := keyOf(w, pool.UID), a.told[pool.Name]
	news := !t.warnings[k] && !t.once[k]
	if t.warnings == nil {
		t.warnings = map[warned]bool{}
	}
	if t.once == nil {
		t.once = map[warned]bool{}
	}
	t.warnings[k] = true
	if w.Once {
		t.once[k] = true
	}
	a.told[pool.Name] = t
	return news
}

// forget drops what is known of a pool that is gone.
func (a *announcer) forget(pool string) {
	a.mu.Lock()
	delete(a.told, pool)
	a.mu.Unlock()
	a.metrics.drop(pool)
}

func claimRef(on rotation.Object) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: on.Name, UID: types.UID(on.UID)}}
	o.SetGroupVersionKind(kinds[on.Kind])
	return o
}

func quantities(l corev1.ResourceList) map[string]string {
	out := make(map[string]string, len(l))
	for name, q := range l {
		out[string(name)] = q.String()
	}
	return out
}
