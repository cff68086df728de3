package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const podReadyStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-ready
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
  next:
    statusTemplate: "phase: Running"
`

const podDeleteStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-delete
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next: {delete: true}
`

func stagesOf(t *testing.T, ready, gone time.Duration) map[string]map[string]any {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"pod-ready.yaml": podReadyStage, "pod-delete.yaml": podDeleteStage} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := stages(dir, ready, gone)
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]map[string]any)
	for _, doc := range strings.Split(string(content), "---\n") {
		var stage map[string]any
		if err := yaml.Unmarshal([]byte(doc), &stage); err != nil {
			t.Fatal(err)
		}
		byName[stage["metadata"].(map[string]any)["name"].(string)] = stage["spec"].(map[string]any)
	}
	return byName
}

func TestWithoutDelaysTheStagesStayAsTheyAre(t *testing.T) {
	got := stagesOf(t, 0, 0)
	var want map[string]any
	if err := yaml.Unmarshal([]byte(podReadyStage), &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Errorf("got %d stages, want the 2 there were", len(got))
	}
	if diff := cmp.Diff(want["spec"], any(got["pod-ready"])); diff != "" {
		t.Errorf("pod-ready changed (-want +got):\n%s", diff)
	}
}

func TestADelayHoldsForLabelledPodsOnly(t *testing.T) {
	got := stagesOf(t, 1500*time.Millisecond, 0)
	if len(got) != 3 {
		t.Fatalf("got %d stages: want pod-ready, pod-ready-slow and pod-delete", len(got))
	}
	quick, slow := got["pod-ready"], got["pod-ready-slow"]
	if _, delayed := quick["delay"]; delayed {
		t.Error("pods without the label are delayed, too")
	}
	// No pod may match both stages: KWOK would toss a coin.
	expressions := quick["selector"].(map[string]any)["matchExpressions"].([]any)
	want := map[string]any{"key": `.metadata.labels["lab.tasuki.io/slow"]`, "operator": "NotIn", "values": []any{"true"}}
	if diff := cmp.Diff(any(want), expressions[len(expressions)-1]); diff != "" {
		t.Errorf("the quick stage does not exclude labelled pods (-want +got):\n%s", diff)
	}
	labels := slow["selector"].(map[string]any)["matchLabels"]
	if diff := cmp.Diff(any(map[string]any{SlowLabel: "true"}), labels); diff != "" {
		t.Errorf("the slow stage does not select labelled pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(quick["next"], slow["next"]); diff != "" {
		t.Errorf("the two stages do different things (-quick +slow):\n%s", diff)
	}
	delay := slow["delay"].(map[string]any)
	if delay["durationMilliseconds"] != 1500.0 {
		t.Errorf("delay of %v ms, want 1500", delay["durationMilliseconds"])
	}
	// Bound at 10.9 the API says 10; ready at 12.5 would be late enough, ready at 11.5 would not.
	if got, want := delay["durationFrom"].(map[string]any)["jq"].(map[string]any)["expression"].(string),
		`fromdate + 2 | todate | rtrimstr("Z") + ".500Z"`; !strings.HasSuffix(got, want) {
		t.Errorf("the delay ends at %s: want ... %s", got, want)
	}
}

func TestTheDeleteDelayCountsFromTheRequest(t *testing.T) {
	got := stagesOf(t, 0, 3*time.Second)
	delay := got["pod-delete-slow"]["delay"].(map[string]any)
	expression := delay["durationFrom"].(map[string]any)["jq"].(map[string]any)["expression"].(string)
	if !strings.Contains(expression, "deletionGracePeriodSeconds") {
		t.Errorf("%s counts from the end of the grace period", expression)
	}
}

func TestAFolderWithoutStagesIsRefused(t *testing.T) {
	if _, err := stages(t.TempDir(), 0, 0); err == nil {
		t.Error("KWOK would start without stages and do nothing")
	}
}
