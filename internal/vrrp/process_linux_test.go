package vrrp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// holder starts a process that has a FIFO open, in a mode, as its file 3.
func holder(t *testing.T, path string, flag int, command ...string) *exec.Cmd {
	t.Helper()
	end, err := os.OpenFile(path, flag|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	c := exec.Command(command[0], command[1:]...)
	c.ExtraFiles = []*os.File{end}
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Wait()
	})
	return c
}

func newFIFO(t *testing.T) (path string, id fileID) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify.fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := identify(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, id
}

func TestTheWriterOfAFIFOIsFound(t *testing.T) {
	path, id := newFIFO(t)
	if p, err := (machine{}).writer(path, id); err == nil || p.pid != 0 {
		t.Fatalf("nobody writes, and %+v was found", p)
	}
	c := holder(t, path, os.O_RDWR, "sleep", "600")
	p, err := (machine{}).writer(path, id)
	if err != nil || p.pid != c.Process.Pid || p.start == 0 {
		t.Fatalf("found %+v, %v; want process %d", p, err, c.Process.Pid)
	}
	if _, err := (machine{}).ask(p, path); err == nil || !strings.Contains(err.Error(), "not keepalived") {
		t.Errorf("it would ask a sleep, which dies of it: %v", err)
	}

	second := holder(t, path, os.O_WRONLY, "sleep", "600")
	if _, err := (machine{}).writer(path, id); err == nil || !strings.Contains(err.Error(), "both have the FIFO") {
		t.Errorf("with two writers it says %v", err)
	}
	_ = second.Process.Kill()
	_ = second.Wait()
	holder(t, path, os.O_RDONLY, "sleep", "600")
	if _, err := (machine{}).writer(path, id); err == nil || !strings.Contains(err.Error(), "takes words away") {
		t.Errorf("with another reader it says %v", err)
	}
}

func TestAFIFOIsReadOnceInAProcess(t *testing.T) {
	path, id := newFIFO(t)
	holder(t, path, os.O_RDWR, "sleep", "600")
	for i, refused := range []bool{false, true} {
		f, err := openFIFO(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		if _, err := (machine{}).writer(path, id); (err != nil) != refused {
			t.Errorf("open %d times, it says %v", i+1, err)
		}
	}
}

func TestAChildThatIsToBecomeAScriptIsNoSecondWriter(t *testing.T) {
	path, id := newFIFO(t)
	c := holder(t, path, os.O_RDWR, "sh", "-c", "sleep 600 & wait")
	for {
		if writers, _ := (machine{}).holders(path, id); len(writers) == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if p, err := (machine{}).writer(path, id); err != nil || p.pid != c.Process.Pid {
		t.Errorf("found %+v, %v; want process %d", p, err, c.Process.Pid)
	}
}

func TestAProcessShowsThatItRunsOrIsStopped(t *testing.T) {
	c := exec.Command("sh", "-c", "while :; do sleep 0.01; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	await := func(what string, holds func(vitals) bool) {
		t.Helper()
		for {
			v, err := (machine{}).vitals(c.Process.Pid)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if holds(v) {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	first, err := (machine{}).vitals(c.Process.Pid)
	if err != nil || first.parent != os.Getpid() {
		t.Fatalf("it is %+v, %v", first, err)
	}
	await("it runs", func(v vitals) bool { return v.switches > first.switches && v.process == first.process })
	_ = c.Process.Signal(unix.SIGSTOP)
	await("it stops", func(v vitals) bool { return v.state == 'T' })
	_ = c.Process.Kill()
	await("it dies", func(v vitals) bool { return v.state == 'Z' })
	_ = c.Wait()
	if v, err := (machine{}).vitals(c.Process.Pid); err == nil {
		t.Errorf("it is gone, and shows %+v", v)
	}
}
