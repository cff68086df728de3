//go:build !linux

package etcdtest

import "syscall"

func orphanless() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
