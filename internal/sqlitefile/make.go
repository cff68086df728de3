package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makeIfNew makes a file when there is none. It is made beside its path and linked there when
// it is whole, so that a file which is not was never a new one; and of two processes that make
// it at once, one wins.
func makeIfNew(ctx context.Context, path string, kind Kind) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return kind.damaged(path, "it is gone, and its -wal is there")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // with mode 0600
	if err != nil {
		return err
	}
	made := file.Name()
	defer func() { _ = os.Remove(made) }()
	if err := file.Close(); err != nil {
		return err
	}
	if err := fill(ctx, made, kind); err != nil {
		return fmt.Errorf("%s %s: %w", kind.Name, path, err)
	}
	if err := os.Link(made, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

// fill makes an empty file one of a kind.
func fill(ctx context.Context, path string, kind Kind) error {
	db, err := sql.Open("sqlite", source(path, "_txlock=immediate"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", kind.id()))
	if err == nil {
		err = migrate(ctx, db, kind)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	}
	return errors.Join(err, db.Close())
}

// migrate takes a file through the steps that it has not taken yet, each in a transaction of
// its own. Several processes may do so at once.
func migrate(ctx context.Context, db *sql.DB, kind Kind) error {
	for {
		more, err := step(ctx, db, kind)
		if err != nil || !more {
			return err
		}
	}
}

func step(ctx context.Context, db *sql.DB, kind Kind) (more bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	version, err := number(ctx, tx, "user_version")
	if err != nil || version >= len(kind.Schema) {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, kind.Schema[version]); err != nil {
		return false, fmt.Errorf("from version %d to %d: %w", version, version+1, err)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1)); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// protect keeps a file to its owner. SQLite gives what it makes beside a file the mode of the
// file.
func protect(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
