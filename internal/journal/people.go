package journal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

// Filter selects rows; its zero value selects all.
type Filter struct {
	States  []capture.State
	Pool    string
	Address netip.Addr
	Limit   int // 0 is no limit
}

// Rows returns the rows that a filter selects, the last written first.
func (j *Journal) Rows(ctx context.Context, f Filter) (rows []Row, err error) {
	query, args := selectActions+`WHERE true`, []any(nil)
	if len(f.States) > 0 {
		query += ` AND state IN (?` + strings.Repeat(`, ?`, len(f.States)-1) + `)`
		for _, s := range f.States {
			args = append(args, s)
		}
	}
	if f.Pool != "" {
		query, args = query+` AND pool = ?`, append(args, f.Pool)
	}
	if f.Address.IsValid() {
		query, args = query+` AND address = ?`, append(args, address(f.Address))
	}
	query, args = query+` ORDER BY written DESC LIMIT ?`, append(args, limit(f.Limit))
	err = j.read(ctx, func(t *tx) error {
		rows = nil
		return t.Rows(query, args, func(scan sqlitefile.Scan) error {
			r, err := t.scan(scan)
			rows = append(rows, r)
			return err
		})
	})
	return rows, err
}

// limit is what LIMIT takes for no limit.
func limit(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// Row returns one row; it is ErrNoAction when there is none.
func (j *Journal) Row(ctx context.Context, id string) (r Row, err error) {
	err = j.read(ctx, func(t *tx) error {
		r, err = t.row(id)
		return err
	})
	return r, err
}

// Events returns the last events of an action, or of all when id is "", the oldest first.
func (j *Journal) Events(ctx context.Context, id string, last int) (events []Event, err error) {
	err = j.read(ctx, func(t *tx) error {
		events = nil
		return t.Rows(`SELECT at, id, from_state, to_state, attempt, detail FROM events WHERE ?1 = '' OR id = ?1 ORDER BY n DESC LIMIT ?2`,
			[]any{id, limit(last)}, func(scan sqlitefile.Scan) error {
				var e Event
				var at stamp
				err := scan(&at, &e.ID, &e.From, &e.To, &e.Attempt, &e.Detail)
				e.At = at.Time
				events = append(events, e)
				return err
			})
	})
	slices.Reverse(events)
	return events, err
}

// Approve lets pending actions begin, and those that only the policy has approved, in somebody's
// name, and returns those that it has approved. Others stay as they are; one that is not there is an error, and nothing is done.
func (j *Journal) Approve(ctx context.Context, ids []string, who string, now time.Time) (approved []capture.Action, err error) {
	if who == "" {
		return nil, errors.New("an approval needs the name of who approves")
	}
	err = j.write(ctx, func(t *tx) error {
		approved = nil
		for _, id := range ids {
			r, err := t.row(id)
			if err != nil {
				return err
			}
			next := r.State
			switch {
			case r.State == capture.Pending:
				next = capture.Approved
			case r.Approver != capture.ByPolicy || r.State != capture.Approved && r.State != capture.Failed:
				continue
			}
			r.Approver = who
			a, err := t.become(&r, next, "approved by "+who, now)
			if err != nil {
				return err
			}
			approved = append(approved, a)
		}
		return nil
	})
	if err != nil {
		return nil, err // nothing was done
	}
	return approved, nil
}

// Hasten lets approved and failed actions begin without waiting for their backoff, and returns
// those that no longer wait. Others stay as they are; one that is not there is an error, and
// nothing is done.
func (j *Journal) Hasten(ctx context.Context, ids []string, now time.Time) (hastened []capture.Action, err error) {
	err = j.write(ctx, func(t *tx) error {
		hastened = nil
		for _, id := range ids {
			r, err := t.row(id)
			if err != nil {
				return err
			}
			if r.NotBefore.IsZero() {
				continue
			}
			r.NotBefore = time.Time{}
			a, err := t.become(&r, r.State, "its backoff was ended", now)
			if err != nil {
				return err
			}
			hastened = append(hastened, a)
		}
		return nil
	})
	if err != nil {
		return nil, err // nothing was done
	}
	return hastened, nil
}

// Undo plans the inverse of an action that has succeeded, at the epoch that is current now,
// and asks the gate in the same transaction. It begins as pending. When the gate refuses it,
// nothing is written, and Undo says why.
func (j *Journal) Undo(ctx context.Context, id, who string, now time.Time) (undo capture.Action, stale capture.Stale, err error) {
	if who == "" {
		return undo, "", errors.New("an undo needs the name of who asks for it")
	}
	err = j.write(ctx, func(t *tx) error {
		r, err := t.row(id)
		if err != nil {
			return err
		}
		switch {
		case r.State != capture.Succeeded:
			return fmt.Errorf("%s is %s: only what has succeeded is undone", id, r.State)
		case r.Undoes != "":
			return fmt.Errorf("%s undoes %s: it has no undo", id, r.Undoes)
		}
		current, err := t.known(r.Key)
		if err != nil {
			return err
		}
		undo = r.Action.Undo(current)
		if stale = capture.Gate(current, undo.Token); stale != "" {
			return nil
		}
		switch there, err := t.row(undo.ID()); {
		case err == nil:
			return fmt.Errorf("%s is planned already, undoes %s and is %s", undo.ID(), there.Undoes, there.State)
		case !errors.Is(err, ErrNoAction):
			return err
		}
		undo, err = t.insert(undo, "undoes "+id+", for "+who, now)
		return err
	})
	if err != nil {
		return capture.Action{}, "", err
	}
	return undo, stale, nil
}
