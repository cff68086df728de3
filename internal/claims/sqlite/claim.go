package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

// Claim reads one claim.
func (s *Store) Claim(ctx context.Context, k capture.Key) (c capture.Claim, err error) {
	err = s.read(ctx, func(tx *sqlitefile.Tx) error {
		err := tx.Row(`SELECT epoch, holder FROM epochs WHERE pool = ? AND address = ? AND domain = ?`,
			[]any{k.Pool, address(k.Address), k.Domain}, &c.Epoch, &c.Holder)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // it was never claimed
		}
		return err
	})
	return c, err
}

// Bump performs each bump whose claim is still what its From says, in one transaction. One
// that cannot be asked for, because it would not raise the epoch or goes beyond what a file
// can count (2^63-1, at a bump per nanosecond in 292 years), is an error; the others are done
// all the same.
func (s *Store) Bump(ctx context.Context, bumps []capture.Bump) ([]bool, error) {
	done := make([]bool, len(bumps))
	var wrong []error
	err := s.write(ctx, func(tx *sqlitefile.Tx, rev int64) error {
		changed := false
		for i := range bumps {
			b := &bumps[i]
			if err := possible(b); err != nil {
				wrong = append(wrong, err)
				continue
			}
			n, err := bump(tx, b, rev)
			if err != nil {
				return fmt.Errorf("bumping %s to %s: %w", b.Key, b.To, err)
			}
			done[i] = n > 0
			changed = changed || done[i]
		}
		if !changed {
			return errUnchanged
		}
		return nil
	})
	if err != nil {
		return make([]bool, len(bumps)), err
	}
	return done, errors.Join(wrong...)
}

func possible(b *capture.Bump) error {
	switch {
	case b.To.Epoch <= b.From.Epoch:
		return fmt.Errorf("%s cannot go from %s to %s: an epoch only rises", b.Key, b.From, b.To)
	case b.To.Epoch > math.MaxInt64:
		return fmt.Errorf("%s cannot go to %s: this store counts up to epoch %d", b.Key, b.To, math.MaxInt64)
	}
	return nil
}

// bump changes the row of a key if it is what the bump expects.
func bump(tx *sqlitefile.Tx, b *capture.Bump, rev int64) (int64, error) {
	pool, addr, domain := b.Key.Pool, address(b.Key.Address), b.Key.Domain
	if b.From == (capture.Claim{}) {
		return tx.Exec(`
			INSERT INTO epochs (pool, address, domain, epoch, holder, rev, line)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?1 || '/' || ?2 || '@' || ?3 || ' ' || ?5 || ' ' || ?4
			WHERE NOT EXISTS (SELECT 1 FROM epochs WHERE pool = ?1 AND address = ?2 AND domain = ?3)`,
			pool, addr, domain, b.To.Epoch, b.To.Holder, rev)
	}
	return tx.Exec(`
		UPDATE epochs SET epoch = ?4, holder = ?5, rev = ?6, line = ?1 || '/' || ?2 || '@' || ?3 || ' ' || ?5 || ' ' || ?4
		WHERE pool = ?1 AND address = ?2 AND domain = ?3 AND epoch = ?7 AND holder = ?8`,
		pool, addr, domain, b.To.Epoch, b.To.Holder, rev, b.From.Epoch, b.From.Holder)
}

// address is how an address is stored, "" when there is none.
func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parseAddress(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	return netip.ParseAddr(s)
}
