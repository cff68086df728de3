package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// Kind is a kind of file.
type Kind struct {
	Name string // for people: "journal"
	// ID is the application_id, four letters by which a file is recognised.
	ID string
	// Schema are the steps that bring a file from one version to the next; a new file takes
	// all of them. A step that was ever released is not changed any more.
	Schema []string
	// Lost says what a person does about a file that is damaged, and what is lost with it.
	Lost string
}

// File is an open file.
type File struct {
	path string
	kind Kind
	// One connection writes, so that the writers of this process queue up; those of other
	// processes wait for SQLite's lock.
	writer, reader *sql.DB
	main, wal      os.FileInfo
}

const (
	readers = 4       // transactions that read at once
	busy    = "10000" // milliseconds that a transaction waits for that of another process
)

// Open opens the file at a path, and makes it when nothing is there. What it refuses it
// leaves as it is.
func Open(ctx context.Context, path string, kind Kind) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makeIfNew(ctx, path, kind); err != nil {
		return nil, err
	}
	return open(ctx, path, kind)
}

// Reopen opens the file that has taken the place of this one, which is closed. It makes none:
// what was there is gone, and a person has to know.
func (f *File) Reopen(ctx context.Context) (*File, error) {
	_ = f.Close() // of a file that has moved, SQLite leaves the -wal alone
	// A -wal of the old file would be replayed into the new one.
	if wal, err := os.Stat(f.path + "-wal"); err == nil && f.wal != nil && os.SameFile(wal, f.wal) {
		return nil, fmt.Errorf("%s %s was replaced, but %[2]s-wal still belongs to the old one: stop the agents, move %[2]s-wal and %[2]s-shm away and start them again", f.kind.Name, f.path)
	}
	return open(ctx, f.path, f.kind)
}

func open(ctx context.Context, path string, kind Kind) (*File, error) {
	f := &File{path: path, kind: kind}
	if err := f.open(ctx); err != nil {
		_ = f.Close()
		return nil, f.explain(err)
	}
	return f, nil
}

func (f *File) open(ctx context.Context) (err error) {
	if f.main, err = os.Stat(f.path); err != nil {
		return err
	}
	if f.main.Size() == 0 {
		return f.Damaged("it is empty") // SQLite would take it for a new one
	}
	if f.writer, err = sql.Open("sqlite", source(f.path, "_txlock=immediate")); err != nil {
		return err
	}
	f.writer.SetMaxOpenConns(1)
	if f.reader, err = sql.Open("sqlite", source(f.path, "_query_only=1")); err != nil {
		return err
	}
	f.reader.SetMaxOpenConns(readers)
	f.reader.SetMaxIdleConns(readers)
	if err := f.check(ctx); err != nil {
		return err
	}
	if err := protect(f.path); err != nil {
		return err
	}
	if err := f.Read(ctx, func(*Tx) error { return nil }); err != nil {
		return err
	}
	f.wal, _ = os.Stat(f.path + "-wal")
	return f.InPlace()
}

// source is the driver's name for a file. It never makes one.
func source(path string, more ...string) string {
	query := append([]string{
		"mode=rw", "_busy_timeout=" + busy, "_synchronous=FULL", "_foreign_keys=1", "_dqs=0", "_defensive=1",
		"_pragma=trusted_schema(0)", "_pragma=cell_size_check(1)",
		"_pragma=cache_size(-500)", // KiB for each connection: the system caches the file, too
	}, more...)
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + strings.Join(query, "&")
}

// Close closes the file.
func (f *File) Close() error {
	var errs []error
	for _, db := range []*sql.DB{f.reader, f.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return f.explain(errors.Join(errs...))
}

// InPlace returns nil while the file at the path is the one that was opened, ErrReplaced when
// it is another, and an error that says what to do when there is none.
func (f *File) InPlace() error {
	// It is not opened for that: to close it again would take away the locks that SQLite has
	// on it in this process.
	now, err := os.Stat(f.path)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s went away while it was in use (%w): stop the agents, put it back with its -wal and start them again", f.kind.Name, f.path, err)
	case !os.SameFile(f.main, now):
		return fmt.Errorf("%s %s was %w: stop what uses it before another takes its place", f.kind.Name, f.path, ErrReplaced)
	}
	return nil
}
