// Package sqlite is the claims store of one host: a file that all its agents share.
//
// It promises what a claims.Store does as long as the file is on a local disk. The schema
// itself refuses an epoch that does not rise. A file that has taken the place of the one in
// use is noticed before the next call, and answered with a Reset; what was under way at that
// moment may have gone to the old one.
package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

//go:embed 1.sql
var version1 string

var kind = sqlitefile.Kind{
	Name: "claims store", ID: "tskC", Schema: []string{version1},
	Lost: "stop the agents that share it, move it away with its -wal and -shm, and start them again; " +
		"they take every epoch up above what their journals know, so never move those away at the same time; " +
		"drains and owners that were set at run time are lost and have to be set again",
}

// Store is a claims store in a file.
type Store struct {
	now func() time.Time

	mu       sync.RWMutex // held for writing while another file is opened
	file     *sqlitefile.File
	id       string
	reopened int

	pulse  pulse
	writes notice
}

var _ claims.Store = (*Store)(nil)

// Open opens the store at a path, and makes it when nothing is there.
func Open(path string) (*Store, error) { return open(path, time.Now) }

func open(path string, now func() time.Time) (*Store, error) {
	file, err := sqlitefile.Open(context.Background(), path, kind)
	if err != nil {
		return nil, err
	}
	s := &Store{now: now, file: file}
	if s.id, err = identify(context.Background(), file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return s, nil
}

func identify(ctx context.Context, file *sqlitefile.File) (id string, err error) {
	err = file.Read(ctx, func(tx *sqlitefile.Tx) error {
		return tx.Row(`SELECT store FROM meta`, nil, &id)
	})
	return id, err
}

// Close closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}

// use calls do with the file that is at the path now.
func (s *Store) use(ctx context.Context, do func(*sqlitefile.File) error) error {
	s.mu.RLock()
	err := s.file.InPlace()
	if err == nil {
		defer s.mu.RUnlock()
		return do(s.file)
	}
	s.mu.RUnlock()
	if errors.Is(err, sqlitefile.ErrReplaced) {
		err = s.reopen(ctx)
	}
	if err != nil {
		return err
	}
	return s.use(ctx, do)
}

func (s *Store) reopen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file.InPlace() == nil {
		return nil // somebody else was faster
	}
	file, err := s.file.Reopen(ctx)
	if err != nil {
		return err
	}
	id, err := identify(ctx, file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	// A backup has the name of the store that it was made of; a revision from before has to
	// be told from one that is counted on from there.
	s.reopened++
	s.file, s.id = file, fmt.Sprintf("%s+%d", id, s.reopened)
	return nil
}

// read runs a transaction that sees everything that was acknowledged before.
func (s *Store) read(ctx context.Context, do func(*sqlitefile.Tx) error) error {
	return s.use(ctx, func(f *sqlitefile.File) error { return f.Read(ctx, do) })
}

// errUnchanged ends a transaction that has found nothing to write.
var errUnchanged = errors.New("nothing to change")

// write runs a transaction that gets the next revision for what it changes.
func (s *Store) write(ctx context.Context, do func(tx *sqlitefile.Tx, rev int64) error) error {
	err := s.use(ctx, func(f *sqlitefile.File) error {
		return f.Write(ctx, func(tx *sqlitefile.Tx) error {
			var rev int64
			if err := tx.Row(`SELECT revision + 1 FROM meta`, nil, &rev); err != nil {
				return err
			}
			if err := do(tx, rev); err != nil {
				return err
			}
			_, err := tx.Exec(`UPDATE meta SET revision = ?`, rev)
			return err
		})
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err == nil {
		s.writes.tell()
	}
	return err
}
