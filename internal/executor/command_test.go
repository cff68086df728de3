package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the binary of the tests be the executors, good and bad, that an agent starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as" {
		os.Exit(as(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func as(what string, args []string) int {
	switch what {
	case "done":
		return Serve(context.Background(), os.Stdin, os.Stdout, map[string]Execute{"aws": func(context.Context, Request) Result {
			return Result{Outcome: OutcomeDone, Calls: 1}
		}})
	case "described":
		fmt.Print(`{"version":1,"outcome":"done","calls":1,"nic":{"addresses":null,"forwards":false}}`)
	case "silent":
	case "garbage":
		fmt.Print("<html>")
	case "twice":
		fmt.Print(`{"version":1,"outcome":"done","calls":1}{"version":1,"outcome":"done","calls":1}`)
	case "disagreeing":
		fmt.Print(`{"version":1,"outcome":"done","calls":1}`)
		return 6
	case "endless":
		for {
			if _, err := fmt.Println(strings.Repeat("x", 4096)); err != nil {
				return 0
			}
		}
	case "panicking":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 8000))
		panic("a bug")
	case "hanging":
		fmt.Fprint(os.Stderr, "I sleep")
		time.Sleep(time.Hour)
	case "hanging-child": // writes the number of its child, which holds the pipes
		child := exec.Command(os.Args[0], "as", "hanging")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(args[0], []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "pid":
		if err := os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "agent": // has an executor hang
		c := Command{Path: os.Args[0], Args: []string{"as", "pid", args[0]}}
		c.Run(context.Background(), whole)
	case "environment":
		fmt.Fprint(os.Stderr, strings.Join(os.Environ(), "\n"))
		return 1
	case "telling": // a result that tells what it should not
		r := Result{Version: 1, Outcome: OutcomePermanent, Code: "X", Message: "proxy " + os.Getenv("HTTPS_PROXY")}
		json.NewEncoder(os.Stdout).Encode(r)
		return r.Outcome.ExitCode()
	}
	return 0
}

func command(t testing.TB, what ...string) *Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Command{Path: self, Args: append([]string{"as"}, what...)}
}

func TestAnExecutorThatDoesItsWorkIsBelieved(t *testing.T) {
	if r := command(t, "done").Run(context.Background(), whole); r.Outcome != OutcomeDone || r.Calls != 1 {
		t.Errorf("got %+v, want it done", r)
	}
}

func TestAnExecutorThatMisbehavesMayHaveAskedTheProvider(t *testing.T) {
	for what, says := range map[string]string{
		"silent":      "JSON",
		"garbage":     "invalid",
		"twice":       "after top-level",
		"disagreeing": "exit code",
		"endless":     "longer than",
		"panicking":   "a bug",
	} {
		t.Run(what, func(t *testing.T) {
			r := command(t, what).Run(context.Background(), whole)
			if r.Outcome != OutcomeUnknown || !strings.Contains(r.Message, says) {
				t.Errorf("got %+v, want it unknown, with %q", r, says)
			}
			if len(r.Message) > 6<<10 {
				t.Errorf("the message has %d bytes", len(r.Message))
			}
		})
	}
}

func TestADescriptionWithoutANICIsNone(t *testing.T) {
	q := Request{Version: Version, Verb: Describe, Profile: whole.Profile, NIC: "eni-a"}
	if r := command(t, "done").Run(context.Background(), q); r.Outcome != OutcomeUnknown {
		t.Errorf("got %+v, want it unknown", r)
	}
	q.Verb, q.Addresses = Locate, []netip.Addr{whole.Address}
	if r := command(t, "described").Run(context.Background(), q); r.Outcome != OutcomeUnknown || !strings.Contains(r.Message, "where") {
		t.Errorf("got %+v, want it unknown where the address is", r)
	}
}

func TestWhatWasNotStartedAskedNobody(t *testing.T) {
	if r := (&Command{Path: filepath.Join(t.TempDir(), "none")}).Run(context.Background(), whole); r.Outcome != OutcomeRetry || !strings.Contains(r.Message, "none") {
		t.Errorf("got %+v, want a retry that names the path", r)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if r := command(t, "done").Run(over, whole); r.Outcome != OutcomeRetry {
		t.Errorf("got %+v, want a retry", r)
	}
	q := whole
	q.NIC = ""
	if r := command(t, "done").Run(context.Background(), q); r.Outcome != OutcomeRefused {
		t.Errorf("got %+v, want it refused", r)
	}
}

func TestAnExecutorIsKilledWithItsChildren(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := command(t, "hanging-child", file)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		awaitPID(t, file)
		cancel()
	}()
	if r := c.Run(ctx, whole); r.Outcome != OutcomeUnknown || !strings.Contains(r.Message, "killed") {
		t.Errorf("got %+v, want it unknown and killed", r)
	}
	awaitGone(t, awaitPID(t, file))
}

func TestAnExecutorHasItsTime(t *testing.T) {
	c := command(t, "hanging")
	c.Time = 100 * time.Millisecond
	if r := c.Run(context.Background(), whole); r.Outcome != OutcomeUnknown || !strings.Contains(r.Message, "100ms, is over") {
		t.Errorf("got %+v, want it unknown, as its time is over", r)
	}
}

func TestI12NoSecretReachesAnExecutorOrAMessage(t *testing.T) {
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AZURE_CLIENT_SECRET", "IDENTITY_HEADER",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "OCI_CLI_KEY_CONTENT", "LD_PRELOAD", "GODEBUG"} {
		t.Setenv(name, "planted in "+name)
	}
	t.Setenv("HTTPS_PROXY", "http://agent:p%61ssword@proxy.example.com:3128")
	t.Setenv("AWS_REGION", "eu-test-1")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:4567")
	r := command(t, "environment").Run(context.Background(), whole)
	for _, leak := range []string{"planted", "p%61ssword", "password"} {
		if strings.Contains(r.Message, leak) {
			t.Errorf("the message holds %q: %s", leak, r.Message)
		}
	}
	for _, want := range []string{"AWS_REGION=eu-test-1", "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:4567", "proxy.example.com", "PATH="} {
		if !strings.Contains(r.Message, want) {
			t.Errorf("the executor was not told %q: %s", want, r.Message)
		}
	}
	if r := command(t, "telling").Run(context.Background(), whole); r.Outcome != OutcomePermanent || strings.Contains(r.Message, "p%61ssword") {
		t.Errorf("got %+v, want it permanent and without the password", r)
	}
}

// awaitPID reads the number of a process from a file that it writes.
func awaitPID(t testing.TB, file string) int {
	for {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			pid, err := strconv.Atoi(string(data))
			if err != nil {
				t.Error(err)
			}
			return pid
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitGone waits until a process is no more, or is a zombie that nobody has asked after yet.
func awaitGone(t testing.TB, pid int) {
	t.Helper()
	for {
		out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || strings.HasPrefix(string(out), "Z") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
