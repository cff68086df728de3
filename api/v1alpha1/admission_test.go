package v1alpha1_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/window"
)

// minimal has every required field and nothing else.
const minimal = `
apiVersion: noderotation.io/v1alpha1
kind: RotationPolicy
metadata: {name: api}
spec:
  nodePoolSelector: {}
  maintenanceWindows:
  - {timezone: Asia/Tokyo, days: [Wed, Sat], start: "02:00", end: "06:00"}
`

// with returns the minimal policy with the fields of a spec laid over it: objects merge,
// anything else replaces, and null removes.
func with(t testing.TB, spec string) string {
	t.Helper()
	var base, over map[string]any
	for text, into := range map[string]*map[string]any{minimal: &base, "spec: " + spec: &over} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	overlay(base, over)
	out, err := yaml.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func overlay(base, over map[string]any) {
	for key, value := range over {
		under, isMap := base[key].(map[string]any)
		if deeper, ok := value.(map[string]any); ok && isMap {
			overlay(under, deeper)
		} else if value == nil {
			delete(base, key)
		} else {
			base[key] = value
		}
	}
}

// Each broken policy is answered with the field, the value and what to write instead.
func TestRefused(t *testing.T) {
	s := newAPIServer(t)
	const duration = `write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h`
	const labelKey = `write a label key, such as topology.kubernetes.io/zone or example.com/rack`
	longPrefix, longName := strings.Repeat("a", 254)+"/x", strings.Repeat("a", 64)
	window := func(fields string) string {
		return `{maintenanceWindows: [{timezone: UTC, days: [Mon], start: "01:00", end: "02:00"}, {` + fields + `}]}`
	}
	const at = `spec.maintenanceWindows[1]`
	for name, c := range map[string]struct {
		spec string
		want []string // every error, in any order
	}{
		// The ten that a person is most likely to write.
		"wrong zone": {
			window(`timezone: JST+9, days: [Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.timezone: Invalid value: "JST+9": write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9`},
		},
		"25:00": {
			window(`timezone: UTC, days: [Mon], start: "25:00", end: "06:00"`),
			[]string{at + `.start: Invalid value: "25:00": write HH:MM from 00:00 to 23:59`},
		},
		"start equals end": {
			window(`timezone: UTC, days: [Mon], start: "02:00", end: "02:00"`),
			[]string{at + `: Invalid value: start and end are both 02:00: for the whole day write start: "00:00" and end: "24:00", otherwise move one of them`},
		},
		"two at a time": {
			`{surge: {maxUnavailable: 2}}`,
			[]string{`spec.surge.maxUnavailable: Invalid value: 2: nodes of a NodePool are replaced one at a time: write 1, or leave maxUnavailable out`},
		},
		"prePull on": {
			`{prePull: {enabled: true}}`,
			[]string{`spec.prePull.enabled: Invalid value: true: pre-pulling images is not available in v1alpha1: write enabled: false, or leave prePull out`},
		},
		"no time to get ready": {
			`{surge: {readyTimeout: 0s}}`,
			[]string{`spec.surge.readyTimeout: Invalid value: "0s": ` + duration},
		},
		"negative cooldown": {
			`{surge: {cooldownAfter: -5m}}`,
			[]string{`spec.surge.cooldownAfter: Invalid value: "-5m": write a duration from 0s (no pause) to 8760h, such as 10m, 1h30m or 1.5h`},
		},
		"no windows": {
			`{maintenanceWindows: []}`,
			[]string{`spec.maintenanceWindows: Invalid value: write at least one window: without one, no rotation can ever start`},
		},
		"unknown day": {
			window(`timezone: UTC, days: [Mon, Wednesday], start: "02:00", end: "06:00"`),
			[]string{at + `.days[1]: Invalid value: "Wednesday": write one of Mon, Tue, Wed, Thu, Fri, Sat, Sun`},
		},
		"no chances": {
			`{minRotationChances: 0}`,
			[]string{`spec.minRotationChances: Invalid value: 0: write at least 1 (2 leaves a second window if the first is missed) and at most 1000`},
		},

		// Windows.
		"a place that does not exist": {
			window(`timezone: Asia/Tokio, days: [Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.timezone: Invalid value: "string": unknown time zone Asia/Tokio evaluating rule: write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9`},
		},
		"no zone": {
			window(`timezone: "", days: [Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.timezone: Invalid value: "": write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9`},
		},
		"the zone of whichever machine": {
			window(`timezone: Local, days: [Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.timezone: Invalid value: "Local": write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9`},
		},
		"an offset": {
			window(`timezone: "+09:00", days: [Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.timezone: Invalid value: "+09:00": write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9`},
		},
		"a window without a zone": {
			window(`days: [Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.timezone: Required value`, `some validation rules were not checked`},
		},
		"opens at 24:00": {
			window(`timezone: UTC, days: [Mon], start: "24:00", end: "06:00"`),
			[]string{at + `.start: Invalid value: "24:00": write HH:MM from 00:00 to 23:59`},
		},
		"closes at 24:01, in one digit": {
			window(`timezone: UTC, days: [Mon], start: "2:00", end: "24:01"`),
			[]string{
				at + `.start: Invalid value: "2:00": write HH:MM from 00:00 to 23:59`,
				at + `.end: Invalid value: "24:01": write HH:MM from 00:00 to 24:00`,
			},
		},
		"a whole day written as 00:00-00:00": {
			window(`timezone: UTC, days: [Mon], start: "00:00", end: "00:00"`),
			[]string{at + `: Invalid value: start and end are both 00:00: for the whole day write start: "00:00" and end: "24:00", otherwise move one of them`},
		},
		"no days": {
			window(`timezone: UTC, days: [], start: "02:00", end: "06:00"`),
			[]string{at + `.days: Invalid value: write at least one of Mon, Tue, Wed, Thu, Fri, Sat, Sun`},
		},
		"a day twice": {
			window(`timezone: UTC, days: [Mon, Tue, Mon], start: "02:00", end: "06:00"`),
			[]string{at + `.days[2]: Duplicate value: "Mon"`},
		},
		"65 windows": {
			`{maintenanceWindows: [` + strings.Repeat(`{timezone: UTC, days: [Mon], start: "02:00", end: "06:00"},`, 65) + `]}`,
			[]string{`spec.maintenanceWindows: Too many: 65: must have at most 64 items`, `some validation rules were not checked`},
		},

		// Durations.
		"words": {
			`{surge: {readyTimeout: 10 minutes}}`,
			[]string{`spec.surge.readyTimeout: Invalid value: "10 minutes": ` + duration},
		},
		"every other duration": {
			`{surge: {cooldownAfter: soon, failurePause: 0s, drainEstimate: -1m, provisioningEstimate: "5", retryBackoff: 0h0m}}`,
			[]string{
				`spec.surge.cooldownAfter: Invalid value: "soon": write a duration from 0s (no pause) to 8760h, such as 10m, 1h30m or 1.5h`,
				`spec.surge.failurePause: Invalid value: "0s": ` + duration + `; or leave it out for the longer of 10m and cooldownAfter`,
				`spec.surge.drainEstimate: Invalid value: "-1m": ` + duration + `; or leave it out for terminationGracePeriod, at most 10m`,
				`spec.surge.provisioningEstimate: Invalid value: "5": ` + duration + `; or leave it out for readyTimeout, at most 5m`,
				`spec.surge.retryBackoff: Invalid value: "0h0m": ` + duration,
			},
		},
		"longer than a year": {
			`{surge: {readyTimeout: 8760h0m1s, retryBackoff: 99999h99999h99999h99999h99999h}}`,
			[]string{
				`spec.surge.readyTimeout: Invalid value: "8760h0m1s": ` + duration,
				`spec.surge.retryBackoff: Invalid value: "99999h99999h99999h99999h99999h": ` + duration,
			},
		},
		"a threshold in days": {
			`{ageThreshold: 5d}`,
			[]string{`spec.ageThreshold: Invalid value: "5d": write auto, or a duration longer than 0 and at most 8760h, such as 120h (there is no unit for days: 5 days are 120h)`},
		},
		"no threshold": {
			`{ageThreshold: 0s}`,
			[]string{`spec.ageThreshold: Invalid value: "0s": write auto, or a duration longer than 0 and at most 8760h, such as 120h (there is no unit for days: 5 days are 120h)`},
		},
		"an empty threshold": {
			`{ageThreshold: ""}`,
			[]string{`spec.ageThreshold: Invalid value: "": write auto, or a duration longer than 0 and at most 8760h, such as 120h (there is no unit for days: 5 days are 120h)`},
		},

		// Node requirements.
		"a key that is none": {
			`{surge: {matchNodeRequirements: {required: ["topology zone", "a/b/c", ""], preferred: [-x]}}}`,
			[]string{
				`spec.surge.matchNodeRequirements.required[0]: Invalid value: "topology zone": ` + labelKey,
				`spec.surge.matchNodeRequirements.required[1]: Invalid value: "a/b/c": ` + labelKey,
				`spec.surge.matchNodeRequirements.required[2]: Invalid value: "": ` + labelKey,
				`spec.surge.matchNodeRequirements.preferred[0]: Invalid value: "-x": ` + labelKey,
			},
		},
		"the node itself": {
			`{surge: {matchNodeRequirements: {required: [kubernetes.io/hostname], preferred: [kubernetes.io/hostname]}}}`,
			[]string{
				`spec.surge.matchNodeRequirements.required[0]: Invalid value: "kubernetes.io/hostname": remove it: it names the very node that is replaced, and Karpenter refuses a pod that requires it`,
				`spec.surge.matchNodeRequirements.preferred[0]: Invalid value: "kubernetes.io/hostname": remove it: it names the very node that is replaced, and Karpenter refuses a pod that requires it`,
				`spec.surge.matchNodeRequirements.preferred: Invalid value: kubernetes.io/hostname is in required too: remove it from one of the two`,
			},
		},
		"the pool itself": {
			`{surge: {matchNodeRequirements: {required: [karpenter.sh/nodepool]}}}`,
			[]string{`spec.surge.matchNodeRequirements.required[0]: Invalid value: "karpenter.sh/nodepool": remove it: the replacement always comes from the node's own NodePool`},
		},
		"the pool itself, preferred": {
			`{surge: {matchNodeRequirements: {preferred: [karpenter.sh/nodepool]}}}`,
			[]string{`spec.surge.matchNodeRequirements.preferred[0]: Invalid value: "karpenter.sh/nodepool": remove it: the replacement always comes from the node's own NodePool`},
		},
		"required and preferred, by default": {
			`{surge: {matchNodeRequirements: {preferred: [example.com/rack, kubernetes.io/arch]}}}`,
			[]string{`spec.surge.matchNodeRequirements.preferred: Invalid value: kubernetes.io/arch is in required too: remove it from one of the two`},
		},
		"a key twice": {
			`{surge: {matchNodeRequirements: {required: [a, b, a], preferred: [c, c]}}}`,
			[]string{
				`spec.surge.matchNodeRequirements.required[2]: Duplicate value: "a"`,
				`spec.surge.matchNodeRequirements.preferred[1]: Duplicate value: "c"`,
			},
		},

		// Selectors that could not be parsed.
		"no selector": {
			`{nodePoolSelector: null}`,
			[]string{`spec.nodePoolSelector: Required value`, `some validation rules were not checked`},
		},
		"In without values": {
			`{nodePoolSelector: {matchExpressions: [{key: team, operator: In}, {key: team, operator: NotIn, values: []}]}}`,
			[]string{
				`spec.nodePoolSelector.matchExpressions[0].values: Invalid value: operator In needs at least one value`,
				`spec.nodePoolSelector.matchExpressions[1].values: Invalid value: operator NotIn needs at least one value`,
			},
		},
		"Exists with values": {
			`{nodePoolSelector: {matchExpressions: [{key: team, operator: Exists, values: [a]}]}}`,
			[]string{`spec.nodePoolSelector.matchExpressions[0].values: Invalid value: operator Exists takes no values: remove them, or write In or NotIn`},
		},
		"an unknown operator": {
			`{nodePoolSelector: {matchExpressions: [{key: team, operator: in, values: [a]}]}}`,
			[]string{`spec.nodePoolSelector.matchExpressions[0].operator: Invalid value: "in": write In, NotIn, Exists or DoesNotExist`},
		},
		"labels that are none": {
			`{nodePoolSelector: {matchLabels: {team: "a b", "my team": x}, matchExpressions: [{key: /x, operator: In, values: [-]}]}}`,
			[]string{
				`spec.nodePoolSelector.matchLabels: Invalid value: write label keys, such as workload or example.com/team`,
				`spec.nodePoolSelector.matchLabels[team]: Invalid value: "a b": write a label value: letters, digits, '-', '_' and '.', with a letter or digit at both ends`,
				`spec.nodePoolSelector.matchExpressions[0].key: Invalid value: "/x": write a label key, such as workload or example.com/team`,
				`spec.nodePoolSelector.matchExpressions[0].values[0]: Invalid value: "-": write a label value: letters, digits, '-', '_' and '.', with a letter or digit at both ends`,
			},
		},

		"labels that are too long": {
			`{nodePoolSelector: {matchLabels: {` + longPrefix + `: x}, matchExpressions: [{key: ` + longPrefix + `, operator: Exists}]},
			  surge: {matchNodeRequirements: {required: [` + longPrefix + `], preferred: [` + longName + `]}}}`,
			[]string{
				`spec.nodePoolSelector.matchLabels: Invalid value: write label keys, such as workload or example.com/team`,
				`spec.nodePoolSelector.matchExpressions[0].key: Invalid value: "` + longPrefix + `": write a label key, such as workload or example.com/team`,
				`spec.surge.matchNodeRequirements.required[0]: Invalid value: "` + longPrefix + `": ` + labelKey,
				`spec.surge.matchNodeRequirements.preferred[0]: Invalid value: "` + longName + `": ` + labelKey,
			},
		},

		"a misspelt field": {
			`{surge: {coolDownAfter: 5m}}`,
			[]string{`unknown field spec.surge.coolDownAfter`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.create(with(t, c.spec))
			if err == nil {
				t.Fatalf("accepted:\n%v", got)
			}
			rest := err.Error()
			for _, want := range c.want {
				if !strings.Contains(rest, want) {
					t.Errorf("does not say\n  %s\nbut\n  %s", want, err)
				}
				rest = strings.Replace(rest, want, "", 1)
			}
			if rest = strings.Trim(rest, "[], ;"); rest != "" {
				t.Errorf("says more than it should:\n  %s", rest)
			}
		})
	}
}

// Policies that are fine, however unusual.
func TestAccepted(t *testing.T) {
	s := newAPIServer(t)
	in := func(fields string) string { return `{maintenanceWindows: [{` + fields + `}]}` }
	for name, spec := range map[string]string{
		"minimal":             `{}`,
		"past midnight":       in(`timezone: Asia/Tokyo, days: [Fri], start: "22:00", end: "02:00"`),
		"until midnight":      in(`timezone: UTC, days: [Fri], start: "22:00", end: "24:00"`),
		"ends at 00:00":       in(`timezone: UTC, days: [Fri], start: "22:00", end: "00:00"`),
		"always":              in(`timezone: UTC, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "00:00", end: "24:00"`),
		"a fixed offset":      in(`timezone: Etc/GMT+9, days: [Mon], start: "01:00", end: "02:00"`),
		"a long zone":         in(`timezone: America/Argentina/Buenos_Aires, days: [Mon], start: "01:00", end: "02:00"`),
		"a zone with a dash":  in(`timezone: America/Port-au-Prince, days: [Mon], start: "01:00", end: "02:00"`),
		"decimals":            `{ageThreshold: 120.5h, surge: {readyTimeout: 1.5h, cooldownAfter: 0.5m}}`,
		"milliseconds":        `{surge: {readyTimeout: 1m500ms, retryBackoff: 1ms}}`,
		"a whole year":        `{ageThreshold: 8760h, surge: {cooldownAfter: 8760h}}`,
		"no cooldown":         `{surge: {cooldownAfter: 0s}}`,
		"no cooldown, bare":   `{surge: {cooldownAfter: "0"}}`,
		"one chance":          `{minRotationChances: 1}`,
		"the optional pauses": `{surge: {failurePause: 20m, drainEstimate: 5m, provisioningEstimate: 90s}}`,
		"the switches":        `{surge: {forcefulFallback: {enabled: true}, wholeNodeReservation: {enabled: true}}, prePull: {enabled: false}}`,
		"nothing required":    `{surge: {matchNodeRequirements: {required: [], preferred: [kubernetes.io/arch]}}}`,
		"own labels":          `{surge: {matchNodeRequirements: {required: [node.kubernetes.io/instance-type, rack], preferred: [example.com/Row_1.a]}}}`,
		"a rich selector": `{nodePoolSelector: {matchLabels: {workload: api, example.com/team: "", x: A.b_c-1}, matchExpressions: [
			{key: a, operator: In, values: [b, c]}, {key: a.b/c, operator: NotIn, values: [""]},
			{key: d, operator: Exists}, {key: e, operator: DoesNotExist}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := s.create(with(t, spec))
			if err != nil {
				t.Fatal(err)
			}

			// What is stored can be read, written back by a client and is still fine.
			policy := decode(t, stored)
			if _, err := policy.Spec.NodePoolSelector.AsSelector(); err != nil {
				t.Errorf("a selector that admission took: %v", err)
			}
			for _, w := range policy.Spec.MaintenanceWindows {
				var days []string
				for _, day := range w.Days {
					days = append(days, string(day))
				}
				if _, err := window.ParseRule(w.Timezone, days, w.Start, w.End); err != nil {
					t.Errorf("a window that admission took: %v", err)
				}
			}
			again, err := json.Marshal(policy)
			if err != nil {
				t.Fatal(err)
			}
			restored, err := s.create(string(again))
			if err != nil {
				t.Fatalf("refused when written back: %v\n%s", err, again)
			}
			if diff := cmp.Diff(policy.Spec, decode(t, restored).Spec); diff != "" {
				t.Errorf("changed when written back (-was +is):\n%s", diff)
			}
		})
	}
}

func decode(t testing.TB, stored map[string]any) *v1alpha1.RotationPolicy {
	t.Helper()
	raw, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	var policy v1alpha1.RotationPolicy
	if err := json.Unmarshal(raw, &policy); err != nil {
		t.Fatalf("a stored policy cannot be read: %v\n%s", err, raw)
	}
	return &policy
}

// The defaults are stored, so that `kubectl get -o yaml` shows what is in force. The three
// durations that are derived when unset stay unset.
func TestDefaults(t *testing.T) {
	stored, err := newAPIServer(t).create(minimal)
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := yaml.UnmarshalStrict([]byte(`
nodePoolSelector: {}
ageThreshold: auto
minRotationChances: 2
maintenanceWindows:
- {timezone: Asia/Tokyo, days: [Wed, Sat], start: "02:00", end: "06:00"}
surge:
  maxUnavailable: 1
  readyTimeout: 15m
  cooldownAfter: 10m
  retryBackoff: 30m
  matchNodeRequirements:
    required: [topology.kubernetes.io/zone, kubernetes.io/arch, karpenter.sh/capacity-type]
    preferred: []
  forcefulFallback: {enabled: false}
  wholeNodeReservation: {enabled: false}
prePull: {enabled: false}
`), &want); err != nil {
		t.Fatal(err)
	}
	got := any(roundTrip(t, stored["spec"]))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// roundTrip brings numbers into the form that YAML decoding gives them.
func roundTrip(t testing.TB, v any) (out any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestExampleIsAccepted(t *testing.T) {
	raw, err := os.ReadFile("../../examples/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newAPIServer(t).create(string(raw)); err != nil {
		t.Error(err)
	}
}
