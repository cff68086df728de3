package journal

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

//go:embed 1.sql
var version1 string

var kind = sqlitefile.Kind{
	Name: "journal", ID: "tskJ", Schema: []string{version1},
	Lost: "stop the agent, move it away with its -wal and -shm, and start the agent again; " +
		"it takes its epochs from the claims store, so never move that away at the same time; " +
		"what this node still had to release is lost with it, so compare its NICs with what it holds, and release the rest by hand",
}

// Journal is a journal file. Its methods may be called from several goroutines at once.
type Journal struct {
	file *sqlitefile.File
	lock *flock.Flock
}

// Open opens the journal at a path, and makes it when nothing is there. No other agent can
// open it until it is closed, or the process ends.
func Open(path string) (*Journal, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // however it is called, it has one lock
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// Beside the journal, not on it: to close it again would take away SQLite's own locks.
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	switch got, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("journal %s cannot be locked: %w", path, err)
	case !got:
		return nil, fmt.Errorf("journal %s is in use: give every agent a path of its own, or stop the other one; its lock ends with it, and no file has to be removed", path)
	}
	file, err := sqlitefile.Open(context.Background(), path, kind)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Journal{file: file, lock: lock}, nil
}

// Close closes the journal and lets others open it.
func (j *Journal) Close() error { return errors.Join(j.file.Close(), j.lock.Close()) }

// write runs a transaction that changes rows.
func (j *Journal) write(ctx context.Context, do func(*tx) error) error {
	if err := j.file.InPlace(); err != nil {
		return err
	}
	return j.file.Write(ctx, func(t *sqlitefile.Tx) error { return do(&tx{Tx: t, file: j.file}) })
}

// read runs a transaction that sees one moment.
func (j *Journal) read(ctx context.Context, do func(*tx) error) error {
	if err := j.file.InPlace(); err != nil {
		return err
	}
	return j.file.Read(ctx, func(t *sqlitefile.Tx) error { return do(&tx{Tx: t, file: j.file}) })
}

// tx is a transaction on the journal.
type tx struct {
	*sqlitefile.Tx
	file *sqlitefile.File
}
