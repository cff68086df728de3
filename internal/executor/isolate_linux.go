package executor

import (
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own, which is killed as a whole, and has
// the kernel kill it when the thread that started it is gone: an agent that was killed
// leaves no executor behind that could still call its provider.
func isolate(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
}
