package etcdtest

import "syscall"

// orphanless has a child killed when this process dies, however it does.
func orphanless() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
