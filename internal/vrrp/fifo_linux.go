package vrrp

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// maxLine bounds a line in bytes. keepalived writes each with one write, which is whole up to
// this length.
const maxLine = 4096

// fileID names a file, whatever its paths.
type fileID struct{ dev, ino uint64 }

// identify names the file that a path leads to.
func identify(path string) (fileID, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return fileID{}, err
	}
	return fileID{dev: s.Dev, ino: s.Ino}, nil
}

// fifo is an open FIFO.
type fifo struct {
	fd   int
	id   fileID
	rest []byte // the beginning of a line whose end is not there yet
}

func openFIFO(path string) (*fifo, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the FIFO %s: %w", path, err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFIFO {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is not a FIFO: it has to be keepalived's vrrp_notify_fifo (%v)", path, err)
	}
	return &fifo{fd: fd, id: fileID{dev: s.Dev, ino: s.Ino}}, nil
}

func (f *fifo) close() { unix.Close(f.fd) }

// wait returns when something can be read, and after d at the latest.
func (f *fifo) wait(d time.Duration) {
	fds := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, int(d.Milliseconds())) // an error is one of the read that follows
}

// errClosed says that nobody has the FIFO open for writing.
var errClosed = errors.New("nobody has the notify FIFO open for writing: keepalived does not run, or writes to another one")

// errOverflow says that there was so much to read that more may have been lost.
var errOverflow = errors.New("the notify FIFO was not read for so long that words of keepalived may be lost")

// read returns the lines that are there. Those that come with an error were there before it.
func (f *fifo) read() ([]string, error) {
	// keepalived drops what does not fit, so that what fits may be old.
	var lost error
	waiting, err := unix.IoctlGetInt(f.fd, unix.TIOCINQ) // the same number as FIONREAD
	size, err2 := unix.FcntlInt(uintptr(f.fd), unix.F_GETPIPE_SZ, 0)
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("look into the notify FIFO: %w", err)
	}
	if waiting > size/2 {
		lost = errOverflow
	}
	buffer := make([]byte, 64<<10)
	var lines []string
	for {
		n, err := unix.Read(f.fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return lines, lost
		case err != nil:
			return lines, fmt.Errorf("read the notify FIFO: %w", err)
		case n == 0:
			return lines, errClosed
		}
		lines = append(lines, f.split(buffer[:n])...)
	}
}

// split cuts into lines what follows the rest. A line that is too long is passed on as it
// is, to be refused.
func (f *fifo) split(data []byte) (lines []string) {
	f.rest = append(f.rest, data...)
	for {
		head, tail, ok := bytes.Cut(f.rest, []byte{'\n'})
		if !ok {
			break
		}
		lines = append(lines, string(head))
		f.rest = tail
	}
	if len(f.rest) > maxLine {
		lines = append(lines, string(f.rest[:maxLine]))
		f.rest = nil
	}
	return lines
}
