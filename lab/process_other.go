//go:build !linux

package lab

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
)

var errNotLinux = errors.New("the lab runs on Linux only: it relies on /proc and on the parent-death signal")

func birth(int) (uint64, bool) { return 0, false }

func (p process) signal(syscall.Signal) error { return errNotLinux }

// StartProcess does not work here.
func StartProcess(*exec.Cmd, bool) error { return errNotLinux }

func spawn(*exec.Cmd, bool) (process, error) { return process{}, errNotLinux }

func interruptGroup(*exec.Cmd) {}

func lockFile(context.Context, string, func()) (func(), error) { return nil, errNotLinux }
