package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Begin claims an action for an attempt that has certainly ended by the deadline, and asks the
// gate in the same transaction (ADR 0008 §4). The action is running when both are fine. When
// the gate finds it stale, it is skipped, and Begin says why. An action that is neither
// approved nor failed stays as it is, with ErrNotStartable, and is returned with times of the
// wall clock.
func (j *Journal) Begin(ctx context.Context, id string, now, deadline time.Time) (a capture.Action, stale capture.Stale, err error) {
	if deadline.IsZero() {
		return a, "", fmt.Errorf("%s cannot begin without a deadline: give it the time of an executor", id)
	}
	err = j.write(ctx, func(t *tx) error {
		r, err := t.row(id)
		if err != nil {
			return err
		}
		a = r.Action
		if r.State != capture.Approved && r.State != capture.Failed {
			return fmt.Errorf("%s is %s: %w", id, r.State, ErrNotStartable)
		}
		if stale, err = t.gate(r.Token); err != nil {
			return err
		}
		if stale != "" {
			r.Reason = string(stale)
			a, err = t.become(&r, capture.Skipped, r.Reason, now)
			return err
		}
		r.Attempts++
		r.Unanswered++
		r.Deadline = deadline
		a, err = t.become(&r, capture.Running, "", now)
		return err
	})
	if err != nil && !errors.Is(err, ErrNotStartable) {
		return capture.Action{}, "", err
	}
	return a, stale, err
}

// End writes down how an attempt that Begin has begun ended. A success whose epoch is not the
// known one any more is marked superseded; that of an undo takes back what it undoes. When the
// attempt was given up meanwhile nothing is written: the error is ErrGivenUp, and the action
// is returned as it is, with times of the wall clock.
func (j *Journal) End(ctx context.Context, begun capture.Action, e Ending, now time.Time) (a capture.Action, err error) {
	switch e.State {
	case capture.Succeeded, capture.Failed, capture.Skipped, capture.Approved:
	default:
		return a, fmt.Errorf("%s: an attempt does not end as %q", begun.ID(), e.State)
	}
	err = j.write(ctx, func(t *tx) error {
		r, err := t.row(begun.ID())
		if err != nil {
			return err
		}
		a = r.Action
		if r.State != capture.Running || r.Attempts != begun.Attempts {
			return fmt.Errorf("attempt %d of %s, which is %s at attempt %d: %w", begun.Attempts, begun.ID(), r.State, r.Attempts, ErrGivenUp)
		}
		a, err = t.end(&r, e, now)
		return err
	})
	if err != nil && !errors.Is(err, ErrGivenUp) {
		return capture.Action{}, err
	}
	return a, err
}

func (t *tx) end(r *Row, e Ending, now time.Time) (capture.Action, error) {
	if e.Answered || e.Unasked {
		r.Unanswered--
	}
	if e.Unasked {
		r.Attempts--
	}
	r.NotBefore, r.Reason, r.Code = e.NotBefore, e.Reason, e.Code
	detail := strings.TrimSpace(e.Code + " " + e.Reason)
	if e.State == capture.Succeeded {
		current, err := t.known(r.Key)
		if err != nil {
			return r.Action, err
		}
		if r.Superseded = current.Epoch != r.Epoch; r.Superseded {
			detail = fmt.Sprintf("superseded: the current epoch is %d", current.Epoch)
		}
		if err := t.rollBack(r, now); err != nil {
			return r.Action, err
		}
	}
	return t.become(r, e.State, detail, now)
}

// rollBack ends what an undo that has succeeded undoes.
func (t *tx) rollBack(undo *Row, now time.Time) error {
	if undo.Undoes == "" {
		return nil
	}
	r, err := t.row(undo.Undoes)
	if errors.Is(err, ErrNoAction) || err == nil && r.State != capture.Succeeded {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = t.become(&r, capture.RolledBack, "undone by "+undo.ID(), now)
	return err
}
