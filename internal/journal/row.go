package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

const selectActions = `
	SELECT id, verb, pool, address, domain, epoch, holder, provider, provider_ref, nic, reassign, repair, undoes,
		state, attempts, unanswered, not_before, deadline, reason, code, approver, superseded, created, updated
	FROM actions `

// scan reads a row of selectActions. Its times are of the wall clock.
func (t *tx) scan(scan sqlitefile.Scan) (r Row, err error) {
	var id, addr string
	var notBefore, deadline, created, updated stamp
	err = scan(&id, &r.Verb, &r.Key.Pool, &addr, &r.Key.Domain, &r.Epoch, &r.Holder, &r.Provider, &r.ProviderRef, &r.NIC, &r.Reassign, &r.Repair, &r.Undoes,
		&r.State, &r.Attempts, &r.Unanswered, &notBefore, &deadline, &r.Reason, &r.Code, &r.Approver, &r.Superseded, &created, &updated)
	if err != nil {
		return r, err
	}
	if r.Key.Address, err = parseAddress(addr); err != nil {
		return r, t.file.Damaged("action %s: %v", id, err)
	}
	sqlitefile.Share(&r.Key.Pool)
	sqlitefile.Share(&r.Key.Domain)
	sqlitefile.Share(&r.Holder)
	sqlitefile.Share(&r.Provider)
	sqlitefile.Share(&r.ProviderRef)
	sqlitefile.Share(&r.NIC)
	r.NotBefore, r.Deadline, r.Created, r.Updated = notBefore.Time, deadline.Time, created.Time, updated.Time
	if r.ID() != id {
		return r, t.file.Damaged("action %s has what belongs to %s", id, r.ID())
	}
	return r, nil
}

// row reads one action. It is ErrNoAction when there is none.
func (t *tx) row(id string) (r Row, err error) {
	found := false
	err = t.Rows(selectActions+`WHERE id = ?`, []any{id}, func(scan sqlitefile.Scan) (err error) {
		found = true
		r, err = t.scan(scan)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", ErrNoAction, id)
	}
	return r, err
}

// insert writes a new action, pending as all of them begin.
func (t *tx) insert(a capture.Action, detail string, now time.Time) (capture.Action, error) {
	a = capture.Action{Token: a.Token, Target: a.Target, Reassign: a.Reassign, Repair: a.Repair, Undoes: a.Undoes, State: capture.Pending, Updated: now}
	_, err := t.Exec(`
		INSERT INTO actions (id, verb, pool, address, domain, epoch, holder, provider, provider_ref, nic, reassign, repair, undoes,
			state, attempts, unanswered, not_before, deadline, reason, code, approver, superseded, created, updated, written)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '', '', '', '', '', 0, ?, ?, `+next+`)`,
		a.ID(), a.Verb, a.Key.Pool, address(a.Key.Address), a.Key.Domain, a.Epoch, a.Holder, a.Provider, a.ProviderRef, a.NIC, a.Reassign, a.Repair, a.Undoes,
		a.State, text(now), text(now))
	if err != nil {
		return a, err
	}
	return a, t.tell(a, "", detail, now)
}

// next is the number of the write at hand.
const next = `(SELECT coalesce(max(written), 0) + 1 FROM actions)`

// become writes an action in the state that it has come to, and returns it. Times that mean
// nothing in that state are cleared, so that those which are left were set by this process or
// by View.Restore, and are safe to compare with its clock.
func (t *tx) become(r *Row, to capture.State, detail string, now time.Time) (capture.Action, error) {
	from := r.State
	if r.State = to; to != from {
		r.Updated = now
	}
	if to != capture.Running {
		r.Deadline = time.Time{}
	}
	if to != capture.Approved && to != capture.Failed {
		r.NotBefore = time.Time{}
	}
	if to == capture.Succeeded {
		r.Reason, r.Code = "", ""
	}
	_, err := t.Exec(`
		UPDATE actions SET state = ?, attempts = ?, unanswered = ?, not_before = ?, deadline = ?, reason = ?, code = ?, approver = ?, superseded = ?,
			updated = ?, written = `+next+` WHERE id = ?`,
		r.State, r.Attempts, r.Unanswered, text(r.NotBefore), text(r.Deadline), r.Reason, r.Code, r.Approver, r.Superseded,
		text(r.Updated), r.ID())
	if err != nil {
		return r.Action, err
	}
	return r.Action, t.tell(r.Action, from, detail, now)
}

// tell writes down what has happened to an action.
func (t *tx) tell(a capture.Action, from capture.State, detail string, now time.Time) error {
	_, err := t.Exec(`INSERT INTO events (at, id, from_state, to_state, attempt, detail) VALUES (?, ?, ?, ?, ?, ?)`,
		text(now), a.ID(), from, a.State, a.Attempts, detail)
	return err
}

// known reads the claim by which the gate judges a key; the zero Claim passes nothing.
func (t *tx) known(k capture.Key) (c capture.Claim, err error) {
	err = t.Row(`SELECT epoch, holder FROM known WHERE pool = ? AND address = ? AND domain = ?`,
		[]any{k.Pool, address(k.Address), k.Domain}, &c.Epoch, &c.Holder)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c, err
}

// gate asks the gate in this transaction.
func (t *tx) gate(token capture.Token) (capture.Stale, error) {
	c, err := t.known(token.Key)
	return capture.Gate(c, token), err
}

// layout is how times are written: so that they sort.
const layout = "2006-01-02T15:04:05.000000000Z"

func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(layout)
}

// stamp is a time as it is written.
type stamp struct{ time.Time }

// Scan implements sql.Scanner.
func (s *stamp) Scan(v any) (err error) {
	written, _ := v.(string)
	if s.Time = (time.Time{}); written != "" {
		s.Time, err = time.Parse(time.RFC3339Nano, written)
	}
	return err
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
