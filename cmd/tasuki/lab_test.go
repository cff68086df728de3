package main

import (
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/build"
	"github.com/tasuki-io/tasuki/lab"
)

// Scripts tell a mistake in the command line (2) from a failure (1) by the exit code.
func TestExitCodes(t *testing.T) {
	t.Setenv("TASUKI_CACHE", t.TempDir())
	for line, want := range map[string]struct {
		code int
		text string // in stdout or stderr
	}{
		"--help":                          {exitOK, "Available Commands"},
		"version":                         {exitOK, "tasuki " + build.Version()},
		"--version":                       {exitOK, "tasuki " + build.Version()},
		"version extra":                   {exitUsage, `unexpected argument "extra"`},
		"lab --help":                      {exitOK, "kubeconfig"},
		"":                                {exitUsage, "needs a subcommand"},
		"lab":                             {exitUsage, "needs a subcommand"},
		"nonsense":                        {exitUsage, `unknown command "nonsense"`},
		"lab nonsense":                    {exitUsage, `unknown command "nonsense"`},
		"lab up extra":                    {exitUsage, `unexpected argument "extra": write 'tasuki lab up'`},
		"lab up --nonsense":               {exitUsage, "--nonsense"},
		"lab up --pod-ready-delay 3":      {exitUsage, "--pod-ready-delay"},
		"lab up --pod-delete-delay=-1s":   {exitUsage, "must not be negative"},
		"lab up --name ../x":              {exitUsage, `lab name "../x"`},
		"lab status":                      {exitFailure, "lab default is not up"},
		"lab kubeconfig --name elsewhere": {exitFailure, "lab elsewhere is not up"},
		"lab down":                        {exitOK, "nothing to stop"},
	} {
		t.Run(line, func(t *testing.T) {
			var out strings.Builder
			code := run(t.Context(), strings.Fields(line), &out, &out)
			if code != want.code || !strings.Contains(out.String(), want.text) {
				t.Errorf("exit code %d, want %d; output, which should say %q:\n%s", code, want.code, want.text, out.String())
			}
		})
	}
}

func TestStatusShowsTheDeadOnesLastLines(t *testing.T) {
	var out strings.Builder
	err := printStatus(&out, "default", []lab.ComponentStatus{
		{Name: lab.Etcd, PID: 7, Address: "127.0.0.1:1", State: lab.Ready, Log: "/x/etcd.log"},
		{Name: lab.KWOK, PID: 8, State: lab.Dead, Reason: "its process is gone", Lines: []string{"panic: no stages"}},
	})
	if err == nil || !strings.Contains(err.Error(), "kwok is dead") {
		t.Errorf("got error %v: want one that names the dead component", err)
	}
	for _, want := range []string{"127.0.0.1:1", "/x/etcd.log", "panic: no stages"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("status lacks %q:\n%s", want, out.String())
		}
	}
}
