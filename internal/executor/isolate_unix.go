//go:build unix && !linux

package executor

import (
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own, which is killed as a whole. An
// executor outlives an agent that was killed by no more than its own time.
func isolate(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
}
