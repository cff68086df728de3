package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // as tables are in local time
	code := executortest.Main(m)
	os.RemoveAll(agentDir)
	os.Exit(code)
}

var agentDir string

// agentBinary builds tasuki-agent, once in a run of the tests, and returns its path.
var agentBinary = sync.OnceValues(func() (path string, err error) {
	if agentDir, err = os.MkdirTemp("", "tasuki-agent-"); err != nil {
		return "", err
	}
	path = filepath.Join(agentDir, "tasuki-agent")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/tasuki-io/tasuki/cmd/tasuki-agent").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tasuki-agent: %w\n%s", err, out)
	}
	return path, nil
})

// The commands that ask an agent, as scripts with agents that run, executors in processes of
// their own and the fake of EC2. Beside the usual commands of testscript there are
//
//	ec2                     starts the fake, with the NICs eni-a and eni-b
//	configure FILE          puts FILE in force, with its ENDPOINT replaced by the fake's
//	agent NODE              starts the agent of a node, whose state directory is $NODE
//	halt NODE               ends it by SIGTERM, and expects 0
//	exits CODE ARGUMENTS    runs tasuki, and expects an exit code
//	await REGEXP ARGUMENTS  runs tasuki until its output matches
//	rejects REGEXP CODE ARGUMENTS
//	                        runs tasuki until its errors match, and expects an exit code
//	wide N                  expects that no line of the last output is longer
func TestAgentCommands(t *testing.T) {
	binary, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	program := executortest.Binary(t)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/agent",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Values[stageKey{}] = &stage{agent: binary, executor: program, running: map[string]*exec.Cmd{}}
			e.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ec2":       on((*stage).fake),
			"configure": on((*stage).configure),
			"agent":     on((*stage).raise),
			"halt":      on((*stage).halt),
			"exits":     on((*stage).exits),
			"await":     on((*stage).await),
			"rejects":   on((*stage).rejects),
			"wide":      on((*stage).wide),
		},
	})
}

type stageKey struct{}

// stage is what a script plays on.
type stage struct {
	agent, executor string
	ec2             *executortest.EC2
	running         map[string]*exec.Cmd
	last            string // output
}

func on(f func(*stage, *testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command has no opposite")
		}
		f(ts.Value(stageKey{}).(*stage), ts, args)
	}
}

func (s *stage) fake(ts *testscript.TestScript, _ []string) {
	s.ec2 = executortest.NewEC2()
	ts.Check(s.ec2.Serve("127.0.0.1:0"))
	ts.Defer(func() { s.ec2.Close() })
	for i, id := range []string{"eni-a", "eni-b"} {
		s.ec2.AddNIC(executortest.Interface{ID: id, Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.AddrFrom4([4]byte{10, 20, 0, byte(4 + i)})})
	}
}

func (s *stage) configure(ts *testscript.TestScript, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "ENDPOINT", s.ec2.URL())
	ts.Check(os.MkdirAll(ts.MkAbs("config"), 0o700))
	ts.Check(os.WriteFile(ts.MkAbs("new"), []byte(text), 0o600))
	ts.Check(os.Rename(ts.MkAbs("new"), ts.MkAbs("config/tasuki.yaml")))
}

func (s *stage) raise(ts *testscript.TestScript, args []string) {
	node := args[0]
	cmd := exec.Command(s.agent, "--node", node, "--config", ts.MkAbs("config"), "--state", ts.MkAbs(node), "--claims", ts.MkAbs("claims.db"),
		"--executor", s.executor, "--metrics-bind-address", "0")
	cmd.Env = append(os.Environ(), s.ec2.Environment()...)
	var log bytes.Buffer
	cmd.Stderr = &log
	ts.Check(cmd.Start())
	s.running[node] = cmd
	ts.Defer(func() {
		if s.running[node] == cmd {
			cmd.Process.Kill()
			cmd.Wait()
		}
		ts.Logf("the log of %s:\n%s", node, log.String())
	})
	client := agent.NewClient(agent.Socket(ts.MkAbs(node)))
	until(ts, "the agent of "+node+" answers", func() bool {
		_, err := client.Status(context.Background())
		return err == nil
	})
}

func (s *stage) halt(ts *testscript.TestScript, args []string) {
	cmd := s.running[args[0]]
	delete(s.running, args[0])
	ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	ts.Check(cmd.Wait())
}

func (s *stage) exits(ts *testscript.TestScript, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var out, errs bytes.Buffer
	stdin := strings.NewReader("")
	if slices.Contains(args, "-") {
		stdin = strings.NewReader(ts.ReadFile("stdin.yaml"))
	}
	got := runOn(context.Background(), s.arguments(ts, args[1:]), stdin, &out, &errs)
	s.last = out.String()
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), errs.String())
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	ts.Check(obeys(args[1:], out.String()))
}

// arguments are those of tasuki; a state directory or a file is one of the script.
func (s *stage) arguments(ts *testscript.TestScript, args []string) []string {
	args = append([]string(nil), args...)
	for i, a := range args {
		if i > 0 && (args[i-1] == "--state" || args[i-1] == "-f") && a != "-" {
			args[i] = ts.MkAbs(a)
		}
	}
	return args
}

func (s *stage) await(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	var out, errs bytes.Buffer
	until(ts, fmt.Sprintf("tasuki %v says %s", args[1:], want), func() bool {
		out.Reset()
		errs.Reset()
		run(context.Background(), s.arguments(ts, args[1:]), &out, &errs)
		s.last = out.String()
		return want.MatchString(out.String())
	}, &out, &errs)
	fmt.Fprint(ts.Stdout(), out.String())
}

func (s *stage) rejects(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[0])
	var out, errs bytes.Buffer
	code := 0
	until(ts, fmt.Sprintf("tasuki %v says %s", args[2:], want), func() bool {
		out.Reset()
		errs.Reset()
		code = run(context.Background(), s.arguments(ts, args[2:]), &out, &errs)
		return want.MatchString(errs.String())
	}, &out, &errs)
	if strconv.Itoa(code) != args[1] {
		ts.Fatalf("exit code %d, want %s", code, args[1])
	}
}

func (s *stage) wide(ts *testscript.TestScript, args []string) {
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	for line := range strings.Lines(s.last) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > limit {
			ts.Fatalf("%d columns: %s", n, line)
		}
	}
}

// until waits for something that takes a moment; the bound is for a machine that is very slow.
func until(ts *testscript.TestScript, what string, so func() bool, said ...fmt.Stringer) {
	for end := time.Now().Add(time.Minute); !so(); {
		if time.Now().After(end) {
			for _, s := range said {
				ts.Logf("%s", s)
			}
			ts.Fatalf("it took too long until %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
