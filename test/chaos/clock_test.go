package chaos

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The wall clock of an agent is set while it runs. The agent's own code has no part in it: its
// binary is built on a package time of which Now adds what it reads in a file that is mapped
// into its memory. That is what setting the clock of the machine does: the wall clock jumps,
// and the monotonic one goes on.

const clockFile = "TASUKI_TEST_WALL_CLOCK"

const jumped = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// jump is in a file that the one who sets the clock writes to.
var jump = func() *int64 {
	path, ok := syscall.Getenv("` + clockFile + `")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(path + ": " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(path + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func jumped() int64 {
	if jump == nil {
		return 0
	}
	return atomic.LoadInt64(jump)
}
`

// settable are the flags by which an agent is built on such a package.
func settable(t testing.TB) []string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	at := filepath.Join(strings.TrimSpace(string(out)), "src/time")
	source, err := os.ReadFile(filepath.Join(at, "time.go"))
	must(t, err)
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reads) != 1 {
		t.Fatalf("time.Now of this Go (%s) does not begin with %q: adapt the overlay of the wall clock", at, reads)
	}
	changed := strings.Replace(string(source), reads, reads+"\tsec += jumped()\n", 1)
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "jumped.go": jumped} {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		replace[filepath.Join(at, name)] = file
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(overlay, list, 0o600))
	return []string{"-overlay", overlay}
}

// wallClock is the one of a host.
type wallClock struct {
	t    testing.TB
	path string
}

func newWallClock(t testing.TB, path string) *wallClock {
	must(t, os.WriteFile(path, make([]byte, 8), 0o600))
	return &wallClock{t, path}
}

func (c *wallClock) environment() string { return clockFile + "=" + c.path }

const day = 24 * time.Hour

// set has it be wrong by whole days, so that what it stamps can be put right.
func (c *wallClock) set(days int) {
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	must(c.t, err)
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(days)*int64(day/time.Second))), 0)
	must(c.t, err)
}

// trueTime puts a time right that such a clock has stamped.
func trueTime(stamped time.Time) time.Time {
	if stamped.IsZero() {
		return stamped
	}
	return stamped.Add(time.Since(stamped).Round(day))
}
