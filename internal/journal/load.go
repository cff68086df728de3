package journal

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

// Load reads everything. The times in it are of the wall clock: an agent gives the actions to
// View.Restore.
func (j *Journal) Load(ctx context.Context) (c Contents, err error) {
	err = j.read(ctx, func(t *tx) error {
		c = Contents{Known: map[capture.Key]capture.Claim{}}
		if err := t.loadKnown(c.Known); err != nil {
			return err
		}
		err := t.Rows(selectActions+`ORDER BY written`, nil, func(scan sqlitefile.Scan) error {
			r, err := t.scan(scan)
			c.Actions = append(c.Actions, r.Action)
			return err
		})
		if err != nil {
			return err
		}
		c.Markers, err = t.markers()
		return err
	})
	return c, err
}

func (t *tx) loadKnown(known map[capture.Key]capture.Claim) error {
	return t.Rows(`SELECT pool, address, domain, epoch, holder FROM known`, nil, func(scan sqlitefile.Scan) error {
		var k capture.Key
		var c capture.Claim
		var addr string
		err := scan(&k.Pool, &addr, &k.Domain, &c.Epoch, &c.Holder)
		if err != nil {
			return err
		}
		if k.Address, err = parseAddress(addr); err != nil {
			return t.file.Damaged("%v", err)
		}
		sqlitefile.Share(&k.Pool)
		sqlitefile.Share(&k.Domain)
		sqlitefile.Share(&c.Holder)
		known[k] = c
		return nil
	})
}

func (t *tx) markers() (all []capture.Marker, err error) {
	const query = `SELECT id, verb, pool, address, domain, epoch, holder, provider, provider_ref, nic, repair FROM markers ORDER BY id`
	err = t.Rows(query, nil, func(scan sqlitefile.Scan) error {
		var m capture.Marker
		var id, addr string
		err := scan(&id, &m.Verb, &m.Key.Pool, &addr, &m.Key.Domain, &m.Epoch, &m.Holder, &m.Provider, &m.ProviderRef, &m.NIC, &m.Repair)
		if err != nil {
			return err
		}
		if m.Key.Address, err = parseAddress(addr); err != nil || m.ID() != id {
			return t.file.Damaged("marker %s has what belongs to %s", id, m.ID())
		}
		all = append(all, m)
		return nil
	})
	return all, err
}

// Note raises the epochs that this agent knows of to those that were once current, and lowers
// none. It writes only what tells more than is known already.
func (j *Journal) Note(ctx context.Context, current map[capture.Key]capture.Claim) error {
	if len(current) == 0 {
		return nil
	}
	return j.write(ctx, func(t *tx) error {
		for _, k := range slices.SortedFunc(maps.Keys(current), capture.Key.Compare) {
			if err := t.note(k, current[k]); err != nil {
				return fmt.Errorf("noting that %s is claimed by %s: %w", k, current[k], err)
			}
		}
		return nil
	})
}

func (t *tx) note(k capture.Key, c capture.Claim) error {
	if c.Epoch > math.MaxInt64 {
		return fmt.Errorf("a journal counts up to epoch %d", math.MaxInt64)
	}
	was, err := t.known(k)
	if err != nil || !c.Tells(was) {
		return err
	}
	query := `INSERT INTO known (pool, address, domain, epoch, holder, line)
		VALUES (?1, ?2, ?3, ?4, ?5, ?1 || '/' || ?2 || '@' || ?3 || ' ' || ?5 || ' ' || ?4)`
	if was.Epoch > 0 {
		query = `UPDATE known SET epoch = ?4, holder = ?5, line = ?1 || '/' || ?2 || '@' || ?3 || ' ' || ?5 || ' ' || ?4
			WHERE pool = ?1 AND address = ?2 AND domain = ?3`
	}
	_, err = t.Exec(query, k.Pool, address(k.Address), k.Domain, c.Epoch, c.Holder)
	return err
}
