package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func kwok(d layout, p ports) component {
	return component{
		name:   KWOK,
		addr:   loopback(p.KWOK),
		health: []string{"http://" + loopback(p.KWOK) + "/healthz"},
		args: []string{
			"--kubeconfig=" + d.kubeconfig(KWOK),
			"--config=" + d.config(kwokStages),
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--node-lease-duration-seconds=40",
			"--server-address=" + loopback(p.KWOK),
		},
	}
}

// stages reads KWOK's own stages from a folder and slows down pods labelled SlowLabel.
func stages(dir string, ready, gone time.Duration) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("finding KWOK stages: %w", err)
	}
	var docs [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a KWOK stage: %w", err)
		}
		var stage map[string]any
		if err := yaml.Unmarshal(content, &stage); err != nil {
			return nil, fmt.Errorf("reading KWOK stage %s: %w", file, err)
		}
		patched, err := slowed(stage, ready, gone)
		if err != nil {
			return nil, fmt.Errorf("slowing down KWOK stage %s: %w", file, err)
		}
		for _, s := range patched {
			doc, err := yaml.Marshal(s)
			if err != nil {
				return nil, fmt.Errorf("encoding KWOK stage %s: %w", file, err)
			}
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("no KWOK stages in %s: remove its parent folder and build again", dir)
	}
	return bytes.Join(docs, []byte("---\n")), nil
}

// The instants from which the delays count, as jq expressions in seconds. Binding sets the PodScheduled condition; the
// API server sets a pod's deletionTimestamp to the end of its grace period.
const (
	boundAt   = `.status.conditions // [] | .[] | select(.type == "PodScheduled" and .status == "True") | .lastTransitionTime | fromdate`
	deletedAt = `(.metadata.deletionTimestamp | fromdate) - (.metadata.deletionGracePeriodSeconds // 0)`
)

// slowed returns the stage as it is, or the two stages that replace it: one for pods labelled SlowLabel, with a delay,
// and one for all others.
func slowed(stage map[string]any, ready, gone time.Duration) ([]map[string]any, error) {
	name, _, err := unstructured.NestedString(stage, "metadata", "name")
	if err != nil {
		return nil, err
	}
	switch {
	case name == "pod-ready" && ready > 0:
		return split(stage, name, ready, boundAt)
	case name == "pod-delete" && gone > 0:
		return split(stage, name, gone, deletedAt)
	}
	return []map[string]any{stage}, nil
}

func split(stage map[string]any, name string, delay time.Duration, since string) ([]map[string]any, error) {
	quick := (&unstructured.Unstructured{Object: stage}).DeepCopy().Object
	expressions, _, err := unstructured.NestedSlice(quick, "spec", "selector", "matchExpressions")
	if err != nil {
		return nil, err
	}
	expressions = append(expressions, map[string]any{
		"key":      fmt.Sprintf(".metadata.labels[%q]", SlowLabel),
		"operator": "NotIn",
		"values":   []any{"true"},
	})
	if err := unstructured.SetNestedSlice(quick, expressions, "spec", "selector", "matchExpressions"); err != nil {
		return nil, err
	}

	slow := (&unstructured.Unstructured{Object: stage}).DeepCopy().Object
	for _, set := range []struct {
		value any
		at    []string
	}{
		{name + "-slow", []string{"metadata", "name"}},
		{map[string]any{SlowLabel: "true"}, []string{"spec", "selector", "matchLabels"}},
		{after(since, delay), []string{"spec", "delay"}},
	} {
		if err := unstructured.SetNestedField(slow, set.value, set.at...); err != nil {
			return nil, err
		}
	}
	return []map[string]any{quick, slow}, nil
}

// after is a stage's delay until a fixed instant, which holds even when the pod is written, or KWOK restarted, in
// between. The API keeps whole seconds, rounded down, so a second is added: never too early, at most a second late.
// KWOK falls back to the duration when the expression finds nothing.
func after(since string, delay time.Duration) map[string]any {
	whole := delay.Truncate(time.Second)
	millis := (delay - whole).Milliseconds()
	return map[string]any{
		"durationMilliseconds": delay.Milliseconds(),
		"durationFrom": map[string]any{
			"jq": map[string]any{
				"expression": fmt.Sprintf(`%s + %d | todate | rtrimstr("Z") + ".%03dZ"`, since, int64(whole/time.Second)+1, millis),
			},
		},
	}
}
