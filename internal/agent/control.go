package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Audit is what people may read and change of a journal.
type Audit interface {
	Rows(context.Context, journal.Filter) ([]journal.Row, error)
	Row(ctx context.Context, id string) (journal.Row, error)
	Events(ctx context.Context, id string, limit int) ([]journal.Event, error)
	Approve(ctx context.Context, ids []string, who string, now time.Time) ([]capture.Action, error)
	Hasten(ctx context.Context, ids []string, now time.Time) ([]capture.Action, error)
	Undo(ctx context.Context, id, who string, now time.Time) (capture.Action, capture.Stale, error)
}

// Control answers people: it is served on the agent's socket, as JSON over HTTP. Who may open
// the socket may do everything; who does it is taken from the connection.
type Control struct {
	agent *Agent
	audit Audit
}

// Handler is the control API.
func (c Control) Handler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, f func(*http.Request) (any, error)) {
		mux.HandleFunc("GET /v1/"+path, answer(f))
	}
	post := func(path string, f func(*http.Request) (any, error)) {
		mux.HandleFunc("POST /v1/"+path, answer(f))
	}
	get("status", func(*http.Request) (any, error) { return c.agent.status(), nil })
	get("captures", func(*http.Request) (any, error) { return c.agent.captures(), nil })
	get("doctor", func(*http.Request) (any, error) { return c.agent.doctor(), nil })
	get("explain", c.explain)
	get("actions", c.actions)
	get("journal", c.journal)
	post("approve", c.approve)
	post("execute", c.execute)
	post("rehearse", c.rehearse)
	post("rollback", c.rollback)
	post("drain", c.drain)
	post("own", c.own)
	return mux
}

// Fault is the answer to a question that has none. Its Kind is for exit codes.
type Fault struct {
	Kind  FaultKind `json:"kind"`
	Error string    `json:"error"`
}

// FaultKind sorts faults.
type FaultKind string

// The kinds of faults.
const (
	FaultInput   FaultKind = "input"   // what was asked for makes no sense
	FaultRefused FaultKind = "refused" // a rule or the gate refuses it
	FaultFailed  FaultKind = "failed"  // it was tried
)

type fault struct {
	FaultKind
	error
}

func (f fault) Unwrap() error { return f.error }

func refused(format string, args ...any) error {
	return fault{FaultRefused, fmt.Errorf(format, args...)}
}
func input(format string, args ...any) error { return fault{FaultInput, fmt.Errorf(format, args...)} }

// longest is the longest request in bytes: some 100,000 actions by their IDs.
const longest = 16 << 20

func answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, longest)
		got, err := f(r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			kind, status := FaultFailed, http.StatusInternalServerError
			if f := (fault{}); errors.As(err, &f) {
				kind, status = f.FaultKind, http.StatusUnprocessableEntity
			}
			w.WriteHeader(status)
			got = Fault{kind, err.Error()}
		}
		_ = json.NewEncoder(w).Encode(got) // the other side has gone
	}
}

// body reads a request: one JSON object, and nothing that it does not know.
func body[T any](r *http.Request) (T, error) {
	var v T
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, input("read the request: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, input("read the request: something follows the JSON object")
	}
	return v, nil
}

// change writes to the journal between two passes, and has the next one see it.
func (c Control) change(r *http.Request, what string, write func(context.Context, time.Time) ([]capture.Action, error)) (any, error) {
	ids := []string{}
	var failed error
	err := c.agent.do(r.Context(), func() { ids, failed = c.agent.changed(r.Context(), write) })
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	c.agent.tell.asked(who(r.Context()), what, "actions", ids)
	return Choice{ids}, nil
}

// changed takes note of what somebody has written to the journal.
func (a *Agent) changed(ctx context.Context, write func(context.Context, time.Time) ([]capture.Action, error)) ([]string, error) {
	now := a.now()
	rows, err := write(ctx, now)
	if err != nil && !errors.Is(err, journal.ErrNoAction) && !errors.As(err, new(fault)) {
		err = a.doubts(err)
	}
	ids := []string{}
	for _, row := range rows {
		row.Updated, row.NotBefore = now, time.Time{}
		a.record(row)
		ids = append(ids, row.ID())
	}
	return ids, err
}
