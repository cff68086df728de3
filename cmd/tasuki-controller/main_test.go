package main

import (
	"errors"
	"strings"
	"testing"
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
			err := run(tc.args)
			var usage usageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a usage error with %q", err, tc.want)
			}
		})
	}
}

func TestAMissingKubeconfigIsNoUsageError(t *testing.T) {
	err := run([]string{"--kubeconfig", "/does/not/exist"})
	var usage usageError
	if err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), "find the cluster") {
		t.Errorf("got %v, want an error that says that no cluster was found", err)
	}
}
