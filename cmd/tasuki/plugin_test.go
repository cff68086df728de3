package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestCalledBy(t *testing.T) {
	for path, want := range map[string]string{
		"tasuki": "tasuki", "/usr/bin/tasuki": "tasuki", "bin/tasuki.exe": "tasuki", "/tmp/kubectl-tasuki2": "tasuki",
		"/usr/local/bin/kubectl-tasuki": "kubectl tasuki", "kubectl-tasuki.exe": "kubectl tasuki",
	} {
		if got := calledBy(path); got != want {
			t.Errorf("%s is called %q, want %q", path, got, want)
		}
	}
}

// commands are those that people see, with their lines.
func commands() map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		if !c.Hidden && c.Name() != "help" {
			found[c.CommandPath()] = c
		}
		for _, of := range c.Commands() {
			add(of)
		}
	}
	add(newRoot(io.Discard, io.Discard))
	return found
}

// A plugin of kubectl tells people what they can type.
func TestAPluginSpeaksForKubectl(t *testing.T) {
	called = "kubectl tasuki"
	t.Cleanup(func() { called = "tasuki" })
	bare := regexp.MustCompile(`(^|[^l]) tasuki [a-z]+`)
	for path, c := range commands() {
		if !strings.HasPrefix(path, called) {
			t.Errorf("a command is called %q", path)
		}
		for line := range strings.Lines(c.Long + "\n" + c.UsageString()) {
			if m := bare.FindString(line); m != "" && strings.Contains(asCalled(c.Root(), line), called) && asCalled(c.Root(), line) != line {
				t.Errorf("%s speaks of %q: %s", path, m, line)
			}
		}
	}
	for line, want := range map[string]string{
		"--version": "kubectl tasuki ",
		"explain":   "kubectl tasuki: kubectl tasuki explain needs a subcommand: nodeclaim or nodepool\nRun 'kubectl tasuki explain --help' for usage.",
		"lab down --name " + filepath.Base(t.TempDir()): "nothing to stop",
		"lab status --name nowhere":                     "start it with \"kubectl tasuki lab up --name nowhere\"",
	} {
		var out strings.Builder
		run(t.Context(), strings.Fields(line), &out, &out)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q, which should say %q", line, out.String(), want)
		}
	}
}

// command is a call of tasuki in a line of a shell.
var command = regexp.MustCompile(`\btasuki( [^|>)&#]*)?`)

// Every command has an example. All of them can be parsed; those about files and clusters do what
// they say, and so do the plans of the README.
func TestExamples(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	objects, readme := testObjects(t), string(text)
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", os.DirFS(examples)); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for path, c := range commands() {
		if c.Example == "" {
			t.Errorf("%s --help has no example", path)
		}
		for example := range strings.Lines(c.Example) {
			line := strings.TrimSpace(command.FindString(example))
			if line == "" {
				continue
			}
			args := strings.Fields(line)[1:]
			of, rest, err := newRoot(io.Discard, io.Discard).Find(args)
			if err == nil {
				err = of.ParseFlags(rest)
			}
			if err == nil {
				err = of.ValidateArgs(of.Flags().Args())
			}
			if err != nil {
				t.Errorf("example of %s: %s: %v", path, line, err)
				continue
			}
			group, _, _ := strings.Cut(strings.TrimPrefix(of.CommandPath(), "tasuki "), " ")
			if slices.Contains([]string{"plan", "explain", "status", "rotate", "freeze", "unfreeze", "version", "completion"}, group) {
				runExample(t, objects, line)
				ran++
			}
		}
	}
	for line := range strings.Lines(readme) {
		if line = strings.ReplaceAll(line, "examples/", ""); strings.HasPrefix(line, "    ") && strings.Contains(line, "bin/tasuki plan ") {
			runExample(t, objects, strings.TrimSpace(command.FindString(line)))
			ran++
		}
	}
	if ran < 25 {
		t.Errorf("only %d examples were run", ran)
	}
}

// runExample runs it on a cluster of its own, and expects that it succeeds.
func runExample(t *testing.T, objects, line string) {
	server, kubeconfig, err := newAPIServer(t.TempDir(), objects)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.CloseClientConnections(); server.Close() }()
	t.Setenv("KUBECONFIG", kubeconfig)
	stdin, err := os.Open("nodepool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	was := os.Stdin
	os.Stdin = stdin
	defer func() { os.Stdin = was }()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// An instant that was yet to come when the example was written.
	line = regexp.MustCompile(`--until 20\S+`).ReplaceAllString(line, "--until "+time.Now().Add(24*time.Hour).Format(time.RFC3339))
	line = regexp.MustCompile(`--serve \S+`).ReplaceAllString(line, "--serve 127.0.0.1:0")
	var out, errs loud
	if strings.Contains(line, "--watch") || strings.Contains(line, "--serve") { // they stay, once they have said something
		go func() {
			for end := time.Now().Add(time.Minute); out.String() == "" && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			cancel()
		}()
	}
	if code := run(ctx, strings.Fields(line)[1:], &out, &errs); code != exitOK || out.String() == "" {
		t.Errorf("%s: exit code %d\n%s%s", line, code, out.String(), errs.String())
	}
	if err := obeys(strings.Fields(line)[1:], out.String()); err != nil {
		t.Errorf("%s: its answer is not what its schema says: %v", line, err)
	}
}

// testObjects are those of the cluster that examples are about.
func testObjects(t *testing.T) string {
	t.Helper()
	var all []string
	for _, file := range []string{"policy", "pool", "claims"} {
		text, err := os.ReadFile("testdata/inquiry/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.ReplaceAll(instants(string(text)), "api-a", "api-x7k2p"))
	}
	all = append(all, strings.NewReplacer("name: api", "name: web", "workload: api", "workload: web").Replace(all[1]))
	return strings.Join(all, "\n---\n")
}

// A shell completes what there is, live; where it cannot, it says why.
func TestCompletion(t *testing.T) {
	server, kubeconfig, err := newAPIServer(t.TempDir(), testObjects(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.CloseClientConnections(); server.Close() }()
	complete := func(line ...string) string {
		var out strings.Builder
		if code := run(t.Context(), append([]string{"__complete"}, line...), &out, io.Discard); code != exitOK {
			t.Errorf("%q: exit code %d", line, code)
		}
		return strings.TrimSpace(out.String())
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	was := completesWithin
	completesWithin = time.Minute // this machine may be busy
	t.Cleanup(func() { completesWithin = was })
	const none = ":4" // and no names of files
	for want, line := range map[string][]string{
		"api-b\tof NodePool api\napi-x7k2p\tof NodePool api\n" + none: {"explain", "nodeclaim", ""},
		"api-x7k2p\tof NodePool api\n" + none:                         {"rotate", "api-x"},
		"api\nweb\n" + none:                                           {"freeze", ""},
		"web\n" + none:                                                {"status", "api", ""},
		"api\n" + none:                                                {"plan", "-f", "../../examples/policy.yaml", "-f", "../../examples/nodepool.yaml", ""},
		"there\n" + none:                                              {"status", "--context", ""},
		"ken\n" + none:                                                {"status", "--user", ""},
		none:                                                          {"rotate", "api-b", ""},
	} {
		if diff := cmp.Diff(want, complete(line...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}

	why := func(want string, line ...string) {
		t.Helper()
		if got := complete(line...); !regexp.MustCompile(`^_activeHelp_ nothing to complete: .*` + want + `.*\n:4$`).MatchString(got) {
			t.Errorf("%q completes %q, which does not say %q", line, got, want)
		}
	}
	server.allow("list nodepools", false)
	why("forbidden", "freeze", "")
	server.Close()
	why("connection refused", "freeze", "")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	completesWithin = 100 * time.Millisecond
	why("(Client.Timeout|context deadline) exceeded", "freeze", "--server", "http://"+silent.Addr().String(), "")
	completesWithin = time.Minute
	why("nowhere.yaml", "plan", "-f", "nowhere.yaml", "")
	why("tasuki-agent", "captures", "drain", "--state", t.TempDir(), "")
	t.Setenv("TASUKI_ACTIVE_HELP", "0")
	if got := complete("freeze", ""); got != none {
		t.Errorf("with active help turned off, it completes %q", got)
	}
}

// kubectl runs the plugin, and completes it through the program that tasuki writes.
func TestInKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil || testing.Short() {
		t.Skip("needs kubectl, and builds tasuki")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "kubectl-tasuki"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server, kubeconfig, err := newAPIServer(dir, testObjects(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.CloseClientConnections(); server.Close() }()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", kubeconfig)
	say := func(args ...string) string {
		out, err := exec.Command(kubectl, args...).CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %q: %v", args, err)
		}
		return string(out)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubectl_complete-tasuki"), []byte(say("tasuki", "completion", "kubectl")), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"kubectl tasuki rotate api-x7k2p --now": {"tasuki", "rotate", "--help"},
		"NODEPOOL":                              {"tasuki", "status", "--context", "there"},
		"api-x7k2p\tof NodePool api\n":          {"__complete", "tasuki", "explain", "nodeclaim", "api-x"},
	} {
		if got := say(args...); !strings.Contains(got, want) {
			t.Errorf("kubectl %q says\n%s, which lacks %q", args, got, want)
		}
	}
}
