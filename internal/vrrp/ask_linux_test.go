package vrrp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dump is the beginning and the end of what keepalived 2.2.7 writes.
const dump = `------< Global definitions >------
 Network namespace = (default)
 VRRP notify fifo = /run/k.fifo, uid:gid 0:0
 VRRP notify priority changes = true
------< VRRP Topology >------
 VRRP Instance = VI_1
   VRRP Version = 2
   State = MASTER
   Flags: none
   Wantstate = MASTER
   Priority = 100
   Effective priority = 101
 VRRP Instance = VI_2
   State = BACKUP
   Effective priority = 90
 VRRP Instance = VI_3
   State = INIT
   Effective priority = 90
------< VRRP Sync groups >------
 VRRP Sync Group = VG, MASTER
   State = MASTER
   Effective priority = 1
`

func TestADataFileSaysTheStateOfEachInstance(t *testing.T) {
	want := map[string]line{
		"VI_1": {name: "VI_1", word: Master, priority: 101},
		"VI_2": {name: "VI_2", word: Backup, priority: 90},
	}
	got := parseDump(dump, "/run/k.fifo")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Error(diff)
	}
	if got := parseDump(dump, "/run/k"); got != nil {
		t.Errorf("the data of another keepalived is read as %v", got)
	}
	for cut := range dump { // while it is written
		for name, l := range parseDump(dump[:cut], "/run/k.fifo") {
			if l != want[name] {
				t.Errorf("of %d bytes it reads %+v for %s", cut, l, name)
			}
		}
	}
}

func TestADataFileThatAnybodyMayHaveWrittenIsNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "root/tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "root/tmp/keepalived.data")
	read := func() map[string]line { return answer(dir, "/run/k.fifo", nil) }
	put := func(mode os.FileMode) {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, []byte(dump), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	put(0o644)
	if len(read()) != 2 {
		t.Error("it is not read at all")
	}
	if got := answer(dir, "/run/k.fifo", stamps(dir)); got != nil {
		t.Errorf("what was there before it was asked is read as %v", got)
	}
	put(0o622)
	if got := read(); got != nil {
		t.Errorf("one that others may write to is read as %v", got)
	}
	put(0o600)
	if err := os.Rename(path, path+".x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".x", path); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != nil {
		t.Errorf("a symbolic link is read as %v", got)
	}
	if os.Geteuid() == 0 {
		os.Remove(path)
		put(0o600)
		if err := os.Chown(path, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != nil {
			t.Errorf("one of another user is read as %v", got)
		}
	}
}

func FuzzParseDump(f *testing.F) {
	f.Add(dump)
	f.Fuzz(func(t *testing.T, data string) {
		for name, l := range parseDump(data, "/run/k.fifo") {
			if !strings.Contains(data, fmt.Sprintf("VRRP Instance = %s\n", name)) || !strings.Contains(data, fmt.Sprintf("State = %s\n", l.word)) {
				t.Errorf("%q is read as %+v", data, l)
			}
		}
	})
}
