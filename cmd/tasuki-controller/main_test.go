package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/reference"
)

func TestWrongFlagsAreUsageErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":      {[]string{"--window", "now"}, "-window"},
		"a stray argument":     {[]string{"run"}, `unexpected argument "run"`},
		"an unknown format":    {[]string{"--log-format", "xml"}, `--log-format "xml": write json or text`},
		"a flag of wrong type": {[]string{"--leader-elect=perhaps"}, "leader-elect"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(tc.args, io.Discard)
			var usage usageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a usage error with %q", err, tc.want)
			}
		})
	}
}

func TestAMissingKubeconfigIsNoUsageError(t *testing.T) {
	err := run([]string{"--kubeconfig", "/does/not/exist"}, io.Discard)
	var usage usageError
	if err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), "find the cluster") {
		t.Errorf("got %v, want an error that says that no cluster was found", err)
	}
}

func TestVersionNeedsNoCluster(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"--kubeconfig", "/does/not/exist", "--version"}, &out); err != nil || !strings.HasPrefix(out.String(), "tasuki-controller ") || !strings.Contains(out.String(), "go1.") {
		t.Errorf("output %q (%v), want the version", out.String(), err)
	}
}

func TestReferenceOfTheFlags(t *testing.T) {
	reference.Keep(t, "reference/tasuki-controller.md", reference.Help(t, "tasuki-controller",
		"It rotates nodes. How it is installed and run is in the [runbook](../runbook.md#install).",
		func() { _ = run([]string{"-h"}, io.Discard) }))
}
