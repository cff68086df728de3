package sqlitefile

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Why a file is refused; the error around it names the path and the way out.
var (
	ErrDamaged  = errors.New("damaged")
	ErrForeign  = errors.New("not a file of ours")
	ErrNewer    = errors.New("of a newer build")
	ErrReplaced = errors.New("replaced while it was in use")
)

// Damaged is the error of a file that is not what was written.
func (f *File) Damaged(format string, args ...any) error {
	return f.kind.damaged(f.path, format, args...)
}

func (k *Kind) damaged(path, format string, args ...any) error {
	return fmt.Errorf("%s %s is %w (%s): %s", k.Name, path, ErrDamaged, fmt.Sprintf(format, args...), k.Lost)
}

// explain adds the file to an error of SQLite's, and the way out when the file is damaged.
func (f *File) explain(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return f.Damaged("%v", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%s %s: another process kept it locked for more than %s ms: %w", f.kind.Name, f.path, busy, err)
	}
	return fmt.Errorf("%s %s: %w", f.kind.Name, f.path, err)
}

// check refuses a file that is not whole, not ours or too new, and brings an older one up to
// date. It changes nothing before it knows what the file is.
func (f *File) check(ctx context.Context) error {
	id, err := number(ctx, f.reader, "application_id")
	if err != nil {
		return err
	}
	version, err := number(ctx, f.reader, "user_version")
	if err != nil {
		return err
	}
	switch newest := len(f.kind.Schema); {
	case id != f.kind.id():
		return fmt.Errorf("%s %s is %w: its application_id is %s, not %s; give the agent another path", f.kind.Name, f.path, ErrForeign, letters(id), letters(f.kind.id()))
	case version > newest:
		return fmt.Errorf("%s %s is %w: it has version %d, and this build knows up to %d; run the build that wrote it, or a newer one", f.kind.Name, f.path, ErrNewer, version, newest)
	case version < 1:
		return f.Damaged("it has version %d", version)
	}
	// Not quick_check: it believes an index that no longer finds a row.
	var first string
	if err := f.reader.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&first); err != nil {
		return err
	}
	if first != "ok" {
		return f.Damaged("%s", first)
	}
	// A copy that somebody made with another tool may have left this mode.
	if err := f.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&first); err != nil {
		return err
	}
	if first != "wal" {
		return fmt.Errorf("%s %s cannot be written ahead, its journal_mode stays %q: put it on a local file system", f.kind.Name, f.path, first)
	}
	if err := migrate(ctx, f.writer, f.kind); err != nil {
		return err
	}
	return f.checkSchema(ctx)
}

// checkSchema compares the schema of the file, its triggers above all, with that of a new one.
func (f *File) checkSchema(ctx context.Context) error {
	fresh, err := sql.Open("sqlite", ":memory:?_dqs=0")
	if err != nil {
		return err
	}
	defer func() { _ = fresh.Close() }()
	fresh.SetMaxOpenConns(1)
	if err := migrate(ctx, fresh, f.kind); err != nil {
		return err
	}
	want, err := schema(ctx, fresh)
	if err != nil {
		return err
	}
	got, err := schema(ctx, f.reader)
	if err == nil && got != want {
		return f.Damaged("its schema is not that of version %d", len(f.kind.Schema))
	}
	return err
}

func schema(ctx context.Context, db *sql.DB) (text string, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT coalesce(group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, ''), char(10) ORDER BY type, name), '')
		FROM sqlite_schema`).Scan(&text)
	return text, err
}

// number reads a pragma.
func number(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, pragma string) (n int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&n)
	return n, err
}

func (k *Kind) id() int { return int(binary.BigEndian.Uint32([]byte(k.ID))) }

// letters shows an application_id as the letters that it was perhaps made of.
func letters(id int) string {
	return strconv.Quote(string(binary.BigEndian.AppendUint32(nil, uint32(id))))
}
