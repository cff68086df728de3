package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var kind = Kind{
	Name: "ledger", ID: "tstL", Lost: "move it away and start again",
	Schema: []string{`CREATE TABLE entries (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;`},
}

func opened(t *testing.T, path string, k Kind) *File {
	t.Helper()
	f, err := Open(t.Context(), path, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, f *File, text string) {
	t.Helper()
	err := f.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO entries (text) VALUES (?)`, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, f *File) (all []string) {
	t.Helper()
	err := f.Read(t.Context(), func(tx *Tx) error {
		return tx.Rows(`SELECT text FROM entries ORDER BY n`, nil, func(scan Scan) error {
			var text string
			all = append(all, "")
			err := scan(&text)
			all[len(all)-1] = text
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Names with spaces and what means something in a URI are names like others.
func TestAFileIsThereAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b", "50%?#.db")
	f := opened(t, path, kind)
	put(t, f, "one")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(entries(t, opened(t, path, kind))); got != "[one]" {
		t.Errorf("after reopening: %s", got)
	}
	if names, _ := filepath.Glob(path + ".new-*"); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestAFailedTransactionDidNothing(t *testing.T) {
	f := opened(t, filepath.Join(t.TempDir(), "f.db"), kind)
	gone := errors.New("changed my mind")
	err := f.Write(t.Context(), func(tx *Tx) error {
		if _, err := tx.Exec(`INSERT INTO entries (text) VALUES ('one')`); err != nil {
			return err
		}
		return gone
	})
	if !errors.Is(err, gone) || len(entries(t, f)) > 0 {
		t.Errorf("error %v, entries %v", err, entries(t, f))
	}
}

func TestWhatReadsCannotWrite(t *testing.T) {
	f := opened(t, filepath.Join(t.TempDir(), "f.db"), kind)
	err := f.Read(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO entries (text) VALUES ('one')`)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), f.path) {
		t.Errorf("error %v, entries %v", err, entries(t, f))
	}
}

// Whoever else is on the host reads nothing of it, whatever the umask was.
func TestNobodyElseReadsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "f.db")
	f := opened(t, path, kind)
	put(t, f, "one")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		mode(t, path+suffix, 0o600)
	}
	mode(t, dir, 0o700)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opened(t, path, kind)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		mode(t, path+suffix, 0o600)
	}
}

func mode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
		t.Errorf("%s: %v, %v; want mode %o", path, info.Mode(), err, want)
	}
}

// Several processes of a host start at once, and make one file.
func TestOneFileIsMadeByMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			f, err := Open(t.Context(), path, kind)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = f.Close() }()
			put(t, f, fmt.Sprint(i))
		})
	}
	wg.Wait()
	if got := entries(t, opened(t, path, kind)); len(got) != 8 {
		t.Errorf("of 8 entries %v are left", got)
	}
}

func TestAFileIsBroughtUpToDateStepByStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	f := opened(t, path, kind)
	put(t, f, "old")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	third := kind
	third.Schema = append(third.Schema[:1:1],
		`ALTER TABLE entries ADD COLUMN length INTEGER NOT NULL DEFAULT 0; UPDATE entries SET length = length(text);`,
		`UPDATE entries SET text = text || ' ' || length;`)
	f = opened(t, path, third)
	if got := fmt.Sprint(entries(t, f)); got != "[old 3]" {
		t.Errorf("after two steps: %s", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(entries(t, opened(t, path, third))); got != "[old 3]" {
		t.Errorf("a step was taken twice: %s", got)
	}
	_, err := Open(t.Context(), path, kind)
	refused(t, path, err, ErrNewer, "it has version 3, and this build knows up to 1")
}

// A step that fails leaves the file at the version that it had.
func TestAFailedStepChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	_ = opened(t, path, kind).Close()
	bad := kind
	bad.Schema = append(bad.Schema[:1:1], `DROP TABLE entries; SELECT nothing FROM nowhere;`)
	if _, err := Open(t.Context(), path, bad); err == nil || !strings.Contains(err.Error(), "from version 1 to 2") {
		t.Errorf("error %v", err)
	}
	put(t, opened(t, path, kind), "still there")
}

// What is refused, and what a person is told.
func TestWhatIsNotWholeOrNotOursIsRefused(t *testing.T) {
	other := kind
	other.ID = "tstX"
	for name, c := range map[string]struct {
		harm func(t *testing.T, path string)
		is   error
		says string
	}{
		"empty":             {func(t *testing.T, p string) { truncate(t, p, 0) }, ErrDamaged, "it is empty"},
		"a few bytes":       {func(t *testing.T, p string) { truncate(t, p, 20) }, ErrDamaged, "move it away"},
		"half a page":       {func(t *testing.T, p string) { truncate(t, p, 2048) }, ErrDamaged, "move it away"},
		"a page is missing": {func(t *testing.T, p string) { truncate(t, p, 4096) }, ErrDamaged, "move it away"},
		"zeros inside":      {func(t *testing.T, p string) { overwrite(t, p, 4096, make([]byte, 4096)) }, ErrDamaged, "move it away"},
		"not SQLite":        {func(t *testing.T, p string) { overwrite(t, p, 0, []byte("Dear diary,     ")) }, ErrDamaged, "not a database"},
		"of another kind": {func(t *testing.T, p string) {
			_ = os.Remove(p)
			_ = opened(t, p, other).Close()
		}, ErrForeign, `its application_id is "tstX", not "tstL"`},
		"a table is gone": {func(t *testing.T, p string) {
			f := opened(t, p, kind)
			if _, err := f.writer.Exec(`DROP TABLE entries`); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		}, ErrDamaged, "its schema is not that of version 1"},
		"gone, with a -wal left": {func(t *testing.T, p string) {
			_ = os.Rename(p, p+"-wal")
		}, ErrDamaged, "it is gone, and its -wal is there"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.db")
			f := opened(t, path, kind)
			put(t, f, strings.Repeat("one ", 5000))
			_ = f.Close()
			c.harm(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(t.Context(), path, kind)
			refused(t, path, err, c.is, c.says)
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("it was changed")
			}
		})
	}
}

func refused(t *testing.T, path string, err, is error, says string) {
	t.Helper()
	if !errors.Is(err, is) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v; want %v with the path, saying %q", err, is, says)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, bytes []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes, at); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// Somebody puts a backup in place while it is in use.
func TestAFileThatIsReplacedIsNoticed(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "f.db"), filepath.Join(dir, "backup.db")
	b := opened(t, backup, kind)
	put(t, b, "backup")
	_ = b.Close()
	f := opened(t, path, kind)
	put(t, f, "one")
	if err := f.InPlace(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(backup, path); err != nil {
		t.Fatal(err)
	}
	if err := f.InPlace(); !errors.Is(err, ErrReplaced) {
		t.Errorf("replaced: %v", err)
	}
	if _, err := f.Reopen(t.Context()); err == nil || !strings.Contains(err.Error(), "-wal still belongs to the old one") {
		t.Errorf("with the -wal of the old one: %v", err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	n, err := f.Reopen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	if got := fmt.Sprint(entries(t, n)); got != "[backup]" {
		t.Errorf("after reopening: %s", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := n.InPlace(); err == nil || !strings.Contains(err.Error(), "put it back with its -wal") {
		t.Errorf("gone: %v", err)
	}
}

// A commit is on the disk before it is acknowledged, whichever connection made it.
func TestEveryConnectionSyncs(t *testing.T) {
	f := opened(t, filepath.Join(t.TempDir(), "f.db"), kind)
	for name, db := range map[string]*sql.DB{"writer": f.writer, "reader": f.reader} {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": busy, "trusted_schema": "0"} {
			var got string
			if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s of the %s is %s, %v; want %s", pragma, name, got, err, want)
			}
		}
	}
}

// Whoever waits for a lock can be told to stop waiting.
func TestWaitingForALockEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	holder, waiter := opened(t, path, kind), opened(t, path, kind)
	err := holder.Write(t.Context(), func(*Tx) error {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- waiter.Write(ctx, func(*Tx) error { return nil }) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
