package sqlitefile

import (
	"context"
	"database/sql"
	"unique"
)

// Tx is a transaction.
type Tx struct {
	ctx      context.Context
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
}

// Write runs a transaction that nobody else writes beside. It is durable when Write returns
// nil, and has done nothing when do returns an error.
func (f *File) Write(ctx context.Context, do func(*Tx) error) error {
	return f.transact(ctx, f.writer, nil, do)
}

// Read runs a transaction that sees one moment, with everything that was acknowledged before
// the call.
func (f *File) Read(ctx context.Context, do func(*Tx) error) error {
	return f.transact(ctx, f.reader, &sql.TxOptions{ReadOnly: true}, do)
}

func (f *File) transact(ctx context.Context, db *sql.DB, options *sql.TxOptions, do func(*Tx) error) error {
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return f.explain(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing is left to roll back after a commit
	if err := do(&Tx{ctx, tx, map[string]*sql.Stmt{}}); err != nil {
		return f.explain(err)
	}
	return f.explain(tx.Commit())
}

// Exec runs a statement and returns how many rows it has changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	stmt, err := tx.prepare(query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(tx.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Row reads one row into places. It returns sql.ErrNoRows when there is none.
func (tx *Tx) Row(query string, args []any, places ...any) error {
	stmt, err := tx.prepare(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(tx.ctx, args...).Scan(places...)
}

// Scan reads the row at hand into places.
type Scan func(places ...any) error

// Share has a name that many rows have be in memory once.
func Share[S ~string](name *S) { *name = unique.Make(*name).Value() }

// Rows calls each for every row.
func (tx *Tx) Rows(query string, args []any, each func(Scan) error) error {
	stmt, err := tx.prepare(query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(tx.ctx, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (tx *Tx) prepare(query string) (*sql.Stmt, error) {
	if stmt := tx.prepared[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := tx.tx.PrepareContext(tx.ctx, query)
	if err == nil {
		tx.prepared[query] = stmt
	}
	return stmt, err
}
