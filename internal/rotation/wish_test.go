package rotation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What would come to nothing is refused, and what only waits is not.
func TestWhatMayBeAskedFor(t *testing.T) {
	annotated := func(pairs ...string) func(*world) {
		return func(w *world) { edit(&w.claim("young").Annotations, pair(pairs...), nil) }
	}
	for _, tt := range []struct {
		name  string
		what  string
		given func(*world)
		want  string // in the error; empty: it is taken
	}{
		{"in the next window", RequestWindow, func(*world) {}, ""},
		{"now", RequestNow, func(*world) {}, ""},
		{"in a cooldown", RequestNow, func(w *world) { w.annotatePool(AnnotationLastRotation, stamp(w.now)) }, ""},
		{"in a backoff", RequestNow, annotated(AnnotationState, StateFailed, AnnotationFailedAt, "2026-06-10T11:59:00Z"), ""},
		{"of a node that is protected", RequestNow, func(w *world) {
			w.change("node-young", func(n *Node) { n.Annotations = pair(AnnotationDoNotDisrupt, "true") })
		}, ""},
		{"it is being deleted", RequestNow, func(w *world) { w.claim("young").Deleting = w.now }, "NodeClaim young is being deleted since 2026-06-10T12:00:00Z"},
		{"it is not of this pool", RequestNow, func(w *world) { w.remove("young"); w.finalize("young") }, "there is no NodeClaim young in NodePool blue"},
		{"it is on the rotation", RequestNow, func(w *world) { w.annotatePool(AnnotationActive, "young") }, "on the rotation already"},
		{"no policy", RequestNow, func(w *world) { w.Governance = Governance{} }, "NodePool blue is not governed, and none of its nodes is rotated: no RotationPolicy selects"},
		{"two policies", RequestNow, func(w *world) { w.Governance = Governance{Conflict: []string{"a", "b"}} }, "RotationPolicies [a b]"},
		{"a static pool", RequestNow, func(w *world) { w.NodePool.Static = true }, "no node of NodePool blue is rotated (static)"},
		{"an infeasible policy", RequestNow, func(w *world) { w.NodePool.ExpireAfter = ptr(2 * day) }, "(infeasible): ANonPositive"},
		{"an unreadable policy", RequestNow, func(w *world) { w.Governance.Policy.Invalid = "the zone is unknown" }, "(policyInvalid): the zone is unknown"},
		{"frozen", RequestWindow, func(w *world) { w.annotatePool(AnnotationFreeze, "2026-06-11T00:00:00Z") }, "NodePool blue is frozen (frozen until 2026-06-11T00:00:00Z): end that with tasuki unfreeze blue, or ask again"},
		{"frozen by mistake", RequestNow, func(w *world) { w.annotatePool(AnnotationFreeze, "tomorrow") }, `"tomorrow"`},
		{"frozen until now", RequestNow, func(w *world) { w.annotatePool(AnnotationFreeze, stamp(w.now)) }, ""},
		{"it never expires", RequestNow, func(w *world) { w.claim("young").ExpireAfter = nil }, "never rotated (neverExpires)"},
		{"it has expired", RequestNow, annotated(AnnotationState, StateExpired), "never rotated (expired)"},
		{"nobody knows its state", RequestNow, annotated(AnnotationState, "paused"), `"paused"`},
		{"asked for already", RequestWindow, annotated(AnnotationRequested, "true", AnnotationRequestedBy, "mei"), "already requested (rotate-requested=true, by mei)"},
		{"asked for now already", RequestWindow, annotated(AnnotationRequested, "now"), "already requested (rotate-requested=now, by somebody)"},
		{"asked for, and now in haste", RequestNow, annotated(AnnotationRequested, "true"), ""},
		{"asked for in words that nobody reads", RequestWindow, annotated(AnnotationRequested, "please"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := asking(t)
			tt.given(w)
			step, err := Ask(w.view(), "young", tt.what, "ken", w.now)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || step.Changes() {
					t.Errorf("%v: %v, want %q", step, err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Step{On: w.claim("young").Object, Set: pair(AnnotationRequested, tt.what, AnnotationRequestedBy, "ken")}
			if diff := cmp.Diff(want, step); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A freeze is made longer by anybody, and shorter only on purpose.
func TestAFreezeIsNotShortenedInSilence(t *testing.T) {
	now := date(t, "2026-06-10T12:00:00Z")
	const early, late = "2026-06-11T00:00:00Z", "2026-06-12T00:00:00Z"
	for _, tt := range []struct {
		name    string
		was     string
		until   string
		shorten bool
		want    string // what is written
		err     string
	}{
		{"none before", "", late, false, late, ""},
		{"longer", early, late, false, late, ""},
		{"one that is over", "2026-06-01T00:00:00Z", early, false, early, ""},
		{"the same", late, late, false, "", ""},
		{"the same in another zone", "2026-06-12T09:00:00+09:00", late, false, "", ""},
		{"shorter", late, early, false, "", "NodePool blue is frozen until " + late},
		{"shorter on purpose", late, early, true, early, ""},
		{"one without an end", "tomorrow", late, false, "", `frozen without an end, as its freeze "tomorrow" cannot be read`},
		{"one without an end, on purpose", "tomorrow", late, true, late, ""},
		{"until now", "", stamp(now), false, "", "is not after now"},
		{"until then, in no time", "", "2026-06-09T00:00:00Z", true, "", "is not after now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := NodePool{Object: Object{Name: "blue", Version: "7"}}
			if tt.was != "" {
				pool.Annotations = pair(AnnotationFreeze, tt.was)
			}
			step, was, err := Freeze(pool, date(t, tt.until).Add(time.Millisecond), tt.shorten, now)
			if text := errorText(err); tt.err == "" && err != nil || !strings.Contains(text, tt.err) || errors.Is(err, ErrShortens) != (strings.Contains(tt.err, "frozen")) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if step.Set[AnnotationFreeze] != tt.want || step.Changes() != (tt.want != "") || tt.want != "" && step.On != pool.Object {
				t.Errorf("it writes %v", step)
			}
			if want := map[bool]string{true: "none", false: tt.was}[tt.was == ""]; err == nil && was != want {
				t.Errorf("it was %q, want %q", was, want)
			}
		})
	}
	pool := NodePool{Annotations: pair(AnnotationFreeze, "tomorrow")}
	if step, was := Unfreeze(pool); was != "tomorrow" || len(step.Clear) != 1 || step.Clear[0] != AnnotationFreeze {
		t.Errorf("unfreeze: %v, it was %q", step, was)
	}
	if step, was := Unfreeze(NodePool{}); was != "none" || step.Changes() {
		t.Errorf("unfreeze: %v, it was %q", step, was)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
