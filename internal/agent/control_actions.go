package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Action is a row of the journal with what keeps it.
type Action struct {
	Pending
	Pool       string         `json:"pool,omitempty"`
	Address    netip.Addr     `json:"address,omitzero"`
	Domain     capture.Domain `json:"domain"`
	Holder     capture.Holder `json:"holder"`
	Provider   string         `json:"provider"`
	Profile    string         `json:"providerRef"`
	Reassign   bool           `json:"allowReassignment,omitempty"`
	Undoes     string         `json:"undoes,omitempty"`
	Created    time.Time      `json:"created"`
	Updated    time.Time      `json:"updated"`
	Approver   string         `json:"approver,omitempty"`
	Superseded bool           `json:"superseded,omitempty"`
}

// Handle is a short name of an action: IDs are made for providers and journals, and are longer
// than a line. Whoever takes an ID from a person takes a handle, too.
func Handle(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}

var handle = regexp.MustCompile(`^[0-9a-f]{8}$`)

// unfinished are the states of an action that is not over.
var unfinished = []capture.State{capture.Pending, capture.Approved, capture.Running, capture.Failed}

// named returns the rows that people have named, by ID or by handle.
func (c Control) named(ctx context.Context, names []string) ([]journal.Row, error) {
	var list []journal.Row
	by := handles{audit: c.audit}
	for _, name := range names {
		row, err := by.row(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

func (c Control) row(ctx context.Context, name string) (journal.Row, error) {
	rows, err := c.named(ctx, []string{name})
	if err != nil {
		return journal.Row{}, err
	}
	return rows[0], nil
}

// handles finds rows by their handles, which the journal does not know: it is read once for all
// that one request names. Most often those are not over, and these are few.
type handles struct {
	audit            Audit
	unfinished, ever map[string][]journal.Row
}

func (h *handles) row(ctx context.Context, name string) (row journal.Row, err error) {
	row, err = h.audit.Row(ctx, name)
	if !errors.Is(err, journal.ErrNoAction) {
		return row, err
	}
	if !handle.MatchString(name) {
		return row, input("action %s is not in the journal: `tasuki actions list --all` shows those that are", name)
	}
	for _, among := range []struct {
		rows   *map[string][]journal.Row
		states []capture.State
	}{{&h.unfinished, unfinished}, {&h.ever, nil}} {
		if *among.rows == nil {
			if *among.rows, err = byHandle(ctx, h.audit, among.states); err != nil {
				return row, err
			}
		}
		switch rows := (*among.rows)[name]; len(rows) {
		case 0:
		case 1:
			return rows[0], nil
		default:
			return row, input("%d actions have the handle %s, such as %s and %s: give the whole ID", len(rows), name, rows[0].ID(), rows[1].ID())
		}
	}
	return row, input("no action of the journal has the handle %s: `tasuki actions list --all` shows those that are there", name)
}

func byHandle(ctx context.Context, audit Audit, states []capture.State) (map[string][]journal.Row, error) {
	rows, err := audit.Rows(ctx, journal.Filter{States: states})
	by := make(map[string][]journal.Row, len(rows))
	for i := range rows {
		name := Handle(rows[i].ID())
		by[name] = append(by[name], rows[i])
	}
	return by, err
}

// ids returns the IDs of the actions that a request names.
func (c Control) ids(r *http.Request) ([]string, error) {
	in, err := body[Choice](r)
	if err != nil {
		return nil, err
	}
	if len(in.IDs) == 0 {
		return nil, input("name at least one action")
	}
	rows, err := c.named(r.Context(), in.IDs)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range rows {
		ids = append(ids, rows[i].ID())
	}
	return ids, nil
}

func (c Control) actions(r *http.Request) (any, error) {
	q := r.URL.Query()
	if names := q["id"]; len(names) > 0 {
		rows, err := c.named(r.Context(), names)
		if err != nil {
			return nil, err
		}
		return c.agent.actions(rows, true), nil
	}
	filter, err := filterOf(q)
	if err != nil {
		return nil, err
	}
	rows, err := c.audit.Rows(r.Context(), filter)
	return c.agent.actions(rows, false), err
}

// filterOf selects what a request asks for, those that are not over by default.
func filterOf(q map[string][]string) (journal.Filter, error) {
	filter := journal.Filter{States: unfinished}
	if _, all := q["all"]; all {
		filter.States = nil
	}
	if states := q["state"]; len(states) > 0 {
		filter.States = nil
		for _, s := range states {
			if !slices.Contains(everyState, capture.State(s)) {
				return filter, input("state %q: an action is one of %s", s, join(everyState))
			}
			filter.States = append(filter.States, capture.State(s))
		}
	}
	if text := q["address"]; len(text) > 0 {
		var err error
		if filter.Address, err = ParseAddress(text[0]); err != nil {
			return filter, fault{FaultInput, err}
		}
	}
	return filter, nil
}

// everyState are all there are.
var everyState = append(slices.Clone(unfinished), capture.Succeeded, capture.Skipped, capture.RolledBack)

func join[T ~string](words []T) string {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	return strings.Join(list, ", ")
}

// actions tells of rows; whole is with all that a policy lacks, which takes time.
func (a *Agent) actions(rows []journal.Row, whole bool) []Action {
	a.mu.RLock()
	defer a.mu.RUnlock()
	held := a.held()
	list := make([]Action, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		p := a.pendingOf(&row.Action, held, whole)
		p.Code = row.Code
		list = append(list, Action{
			Pending: p, Pool: row.Key.Pool, Address: row.Key.Address, Domain: row.Key.Domain, Holder: row.Holder,
			Provider: row.Provider, Profile: row.ProviderRef, Reassign: row.Reassign, Undoes: row.Undoes,
			Created: row.Created, Updated: row.Action.Updated, Approver: row.Approver, Superseded: row.Superseded,
		})
	}
	return list
}

// Event is one change of an action.
type Event struct {
	At      time.Time     `json:"at"`
	ID      string        `json:"id"`
	Handle  string        `json:"handle"`
	Verb    capture.Verb  `json:"verb"`
	Address netip.Addr    `json:"address,omitzero"`
	Epoch   capture.Epoch `json:"epoch"`
	From    capture.State `json:"from,omitempty"`
	To      capture.State `json:"to"`
	Attempt int           `json:"attempt,omitempty"`
	Detail  string        `json:"detail,omitempty"`
}

func (c Control) journal(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "50"))
	if err != nil || limit < 1 {
		return nil, input("limit %q: give a number above 0", q.Get("limit"))
	}
	id := q.Get("id")
	if id != "" {
		row, err := c.row(r.Context(), id)
		if err != nil {
			return nil, err
		}
		id = row.ID()
	}
	events, err := c.audit.Events(r.Context(), id, limit)
	if err != nil {
		return nil, err
	}
	list := make([]Event, 0, len(events))
	rows := map[string]journal.Row{}
	for _, e := range events {
		row, ok := rows[e.ID]
		if !ok {
			if row, err = c.audit.Row(r.Context(), e.ID); err != nil {
				return nil, err
			}
			rows[e.ID] = row
		}
		list = append(list, Event{e.At, e.ID, Handle(e.ID), row.Verb, row.Key.Address, row.Epoch, e.From, e.To, e.Attempt, e.Detail})
	}
	return list, nil
}

// Choice names actions, by ID or by handle; in an answer, by ID.
type Choice struct {
	IDs []string `json:"ids"`
}

func (c Control) approve(r *http.Request) (any, error) {
	ids, err := c.ids(r)
	if err != nil {
		return nil, err
	}
	return c.change(r, "approve", func(ctx context.Context, now time.Time) ([]capture.Action, error) {
		return c.audit.Approve(ctx, ids, who(r.Context()), now)
	})
}

// execute makes the approved and the failed among the chosen due at once. The pass that
// follows begins them, if the policy permits.
func (c Control) execute(r *http.Request) (any, error) {
	ids, err := c.ids(r)
	if err != nil {
		return nil, err
	}
	return c.change(r, "execute", func(ctx context.Context, now time.Time) ([]capture.Action, error) {
		return c.audit.Hasten(ctx, ids, now)
	})
}

// rollback plans the reverse of an action that has succeeded.
// undoable refuses what the gate cannot see, as it knows nodes by their names alone: a release from
// the NIC of a holder that had another name then, and an acquisition on a NIC that is not this
// node's any more.
func (a *Agent) undoable(row capture.Action) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if row.Verb.Acquires() {
		if a.view.Current(row.Key).Holder == capture.Holder(a.node) {
			return refused("node %s is the holder of %s: drain it instead", a.node, row.Key)
		}
		return nil
	}
	for i := range a.config.Pools {
		for j := range a.config.Pools[i].Members {
			if m := &a.config.Pools[i].Members[j]; m.Node == a.node && a.config.target(m) == row.Target {
				return nil
			}
		}
	}
	return refused("NIC %s is not one of node %s any more: nothing is acquired on it", row.NIC, a.node)
}

func (c Control) rollback(r *http.Request) (any, error) {
	ids, err := c.ids(r)
	if err != nil {
		return nil, err
	}
	if len(ids) != 1 {
		return nil, input("roll back one action at a time, not %d", len(ids))
	}
	row, err := c.row(r.Context(), ids[0])
	switch {
	case err != nil:
		return nil, err
	case row.State != capture.Succeeded:
		return nil, refused("action %s is %s: only one that has succeeded is rolled back", ids[0], row.State)
	case row.Undoes != "":
		return nil, refused("action %s is itself a rollback, of %s: it has none", ids[0], row.Undoes)
	case !c.agent.allowsUndo():
		return nil, refused("ProviderActionPolicy: allowUndo is false: set it to true to roll back an action")
	}
	if err := c.agent.undoable(row.Action); err != nil {
		return nil, err
	}
	return c.change(r, "rollback", func(ctx context.Context, now time.Time) ([]capture.Action, error) {
		if planned := c.agent.undoOf(ids[0]); planned != "" {
			return nil, refused("the rollback of %s is planned already, as %s", ids[0], Handle(planned))
		}
		row, stale, err := c.audit.Undo(ctx, ids[0], who(r.Context()), now)
		if err != nil {
			return nil, err
		}
		if stale != "" {
			return nil, refused("the reverse of %s is stale now: %s", ids[0], stale)
		}
		return []capture.Action{row}, nil
	})
}

// undoOf is the open action that takes another back, "" for none.
func (a *Agent) undoOf(id string) string {
	for _, row := range a.view.Open() {
		if row.Undoes == id {
			return row.ID()
		}
	}
	return ""
}

func (a *Agent) allowsUndo() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.config.Policy.AllowUndo
}
