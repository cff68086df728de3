package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/executor"
)

func TestTheArgumentIsOneProvider(t *testing.T) {
	for _, args := range [][]string{{}, {"gcp"}, {"aws", "aws"}, {"--provider=aws"}, {"--help", "aws"}} {
		var out, err bytes.Buffer
		if exit := run(args, strings.NewReader(""), &out, &err); exit != 2 || out.Len() > 0 || !strings.Contains(err.String(), "--help") || !strings.Contains(err.String(), "aws") {
			t.Errorf("%q: exit code %d, output %q, error %q", args, exit, out.String(), err.String())
		}
	}
}

func TestHelpNamesTheProvidersAndTheExitCodes(t *testing.T) {
	for _, flag := range []string{"-h", "--help"} {
		var out, err bytes.Buffer
		if exit := run([]string{flag}, strings.NewReader(""), &out, &err); exit != 0 || err.Len() > 0 || !strings.Contains(out.String(), "provider ("+strings.Join(slices.Sorted(maps.Keys(executors)), ", ")+")") {
			t.Errorf("%s: exit code %d, output %q, error %q", flag, exit, out.String(), err.String())
		}
	}
}

func TestTheProviderOfTheArgumentIsTheOnlyOneServed(t *testing.T) {
	var out, err bytes.Buffer
	exit := run([]string{"aws"}, strings.NewReader(`{"version":1,"verb":"describe","nic":"nic-1","profile":{"name":"p","provider":"azure"}}`), &out, &err)
	if r, bad := executor.DecodeResult(out.Bytes(), exit); bad != nil || r.Outcome != executor.OutcomeRefused || !strings.Contains(r.Message, "azure") {
		t.Errorf("it is answered with %q, exit code %d: want it refused", out.String(), exit)
	}
}

func TestTheVersionIsNoRequest(t *testing.T) {
	var out, err bytes.Buffer
	if exit := run([]string{"--version"}, strings.NewReader(""), &out, &err); exit != 0 || err.Len() > 0 || !strings.HasPrefix(out.String(), "tasuki-executor ") || !strings.Contains(out.String(), "go1.") {
		t.Errorf("exit code %d, output %q, error %q", exit, out.String(), err.String())
	}
}
