package trial

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter starts processes on one thread that never ends: the parent-death signal is tied
// to the thread that forked, and the Go runtime ends threads as it pleases.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts cmd in a session of its own, so that Ctrl-C at the terminal reaches only
// this process. Unless detached, the kernel kills it when this process dies.
func start(cmd *exec.Cmd, detached bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !detached {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}
