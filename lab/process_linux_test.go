package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentEnv makes this test binary a parent that starts a child and then waits to be killed.
const parentEnv = "TASUKI_LAB_TEST_PARENT"

func TestMain(m *testing.M) {
	if kind := os.Getenv(parentEnv); kind != "" {
		p, err := spawn(exec.Command("sleep", "300"), kind == "detached")
		fmt.Println(p.PID, p.Start, err)
		select {}
	}
	os.Exit(m.Run())
}

func sleeper(t *testing.T) process {
	t.Helper()
	p, err := spawn(exec.Command("sleep", "300"), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.end(context.Background(), 0) })
	return p
}

func TestAnotherProcessWithThePidIsNotHit(t *testing.T) {
	p := sleeper(t)
	earlier := process{PID: p.PID, Start: p.Start - 1}
	if earlier.alive() {
		t.Error("a process that started at another time is taken for the one we knew")
	}
	if err := earlier.signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to the earlier owner of the pid: got %v, want %v", err, os.ErrProcessDone)
	}
	if err := earlier.end(t.Context(), time.Second); err != nil {
		t.Errorf("ending a process that is gone: %v", err)
	}
	if !p.alive() {
		t.Fatal("the present owner of the pid was killed")
	}
	if (process{}).alive() {
		t.Error("the zero process is alive")
	}
}

func TestEndWaitsUntilTheProcessIsGone(t *testing.T) {
	for _, grace := range []time.Duration{0, 5 * time.Second} {
		p := sleeper(t)
		if err := p.end(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
		if p.alive() {
			t.Errorf("the process still runs after end with grace %s", grace)
		}
	}
}

func TestAStubbornProcessIsKilledAfterItsGrace(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in
	p, err := spawn(cmd, false)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.end(t.Context(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if p.alive() {
		t.Error("a process that ignores SIGTERM survived")
	}
}

// A test that panics or is killed must leave no control plane behind; "tasuki lab up" must leave one.
func TestWhoSurvivesTheDeathOfTheParent(t *testing.T) {
	for kind, survives := range map[string]bool{"attached": false, "detached": true} {
		t.Run(kind, func(t *testing.T) {
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentEnv+"="+kind)
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var child process
			if n, _ := fmt.Sscan(line, &child.PID, &child.Start); n != 2 || !strings.HasSuffix(line, "<nil>\n") {
				t.Fatalf("the parent says %q", line)
			}
			t.Cleanup(func() { _ = child.end(context.Background(), 0) })
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if died := child.wait(ctx) == nil; died == survives {
				t.Errorf("after the parent was killed the child is gone: %t, want %t", died, !survives)
			}
		})
	}
}

func TestALockHasOneHolder(t *testing.T) {
	path := t.TempDir() + "/folder/lock"
	unlock, err := lockFile(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	told := 0
	if _, err := lockFile(ctx, path, func() { told++ }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second holder: got %v, want it to wait", err)
	}
	if told != 1 {
		t.Errorf("who waits was told %d times, want once", told)
	}
	unlock()
	unlock, err = lockFile(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("the lock was not given back: %v", err)
	}
	unlock()
}
