package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

// Drain takes a node out of every placement, or lets it back. It writes nothing when that is
// so already.
func (s *Store) Drain(ctx context.Context, node string, drained bool) error {
	query := `DELETE FROM drains WHERE node = ?`
	if drained {
		query = `INSERT INTO drains (node) VALUES (?) ON CONFLICT DO NOTHING`
	}
	return s.write(ctx, func(tx *sqlitefile.Tx, _ int64) error {
		if n, err := tx.Exec(query, node); err != nil || n > 0 {
			return err
		}
		return errUnchanged
	})
}

// Own says where an address lives. It writes nothing when it lives there already.
func (s *Store) Own(ctx context.Context, h capture.Home, owner capture.Location) (claims.AddressLease, error) {
	lease := claims.AddressLease{Home: h, Owner: owner}
	pool, addr := h.Pool, address(h.Addr)
	err := s.write(ctx, func(tx *sqlitefile.Tx, rev int64) error {
		var was capture.Location
		err := tx.Row(`SELECT node, site, epoch FROM homes WHERE pool = ? AND address = ?`, []any{pool, addr}, &was.Node, &was.Site, &lease.Epoch)
		query := `UPDATE homes SET node = ?3, site = ?4, epoch = ?5, rev = ?6, line = ?1 || '/' || ?2 || ' ' || ?3 || '@' || ?4 || ' ' || ?5
			WHERE pool = ?1 AND address = ?2`
		switch {
		case errors.Is(err, sql.ErrNoRows):
			query = `INSERT INTO homes (pool, address, node, site, epoch, rev, line)
				VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?1 || '/' || ?2 || ' ' || ?3 || '@' || ?4 || ' ' || ?5)`
		case err != nil:
			return err
		case was == owner:
			return errUnchanged
		}
		lease.Epoch++
		_, err = tx.Exec(query, pool, addr, owner.Node, owner.Site, lease.Epoch, rev)
		return err
	})
	if err != nil {
		return claims.AddressLease{}, err
	}
	return lease, nil
}
