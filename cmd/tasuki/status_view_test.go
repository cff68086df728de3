package main

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

func TestTheStatusViewFitsItsTerminal(t *testing.T) {
	now := time.Date(2026, 6, 10, 2, 0, 0, 0, time.UTC)
	v := statusView{now: now, read: now, pools: []rotation.Overview{
		{
			NodePool: "api", Policy: "nightly", Reason: "awaitingDrain", Detail: "Karpenter drains node node-a; PodDisruptionBudget shop/web: it allows no disruption",
			WindowOpen: true, Window: rotation.Window{End: now.Add(4 * time.Hour)}, Census: rotation.Census{rotation.Eligible: 1, rotation.Backoff: 2, rotation.NotDue: 3},
			Rotation: &rotation.UnderWay{NodeClaim: "api-a", Phase: rotation.PhaseDrain, Since: now.Add(-3 * time.Minute)},
			Last:     &rotation.Result{Outcome: rotation.Failure, At: now.Add(-2 * time.Hour)}, Wake: now.Add(time.Minute),
		},
		{NodePool: "batch", Reason: "ungoverned", Detail: "no RotationPolicy selects this NodePool"},
	}}
	wide := strings.Join(v.frame(200, false), "\n")
	for _, want := range []string{
		"api       nightly  open for 4h  1 of 6, 2 in backoff  api-a drain 3m   failure 120m ago", "awaitingDrain  in 60s\n",
		"batch     -        -            0 of 0                -                -",
		"\n\napi: awaitingDrain: Karpenter drains node node-a; PodDisruptionBudget shop/web: it allows no disruption\n",
	} {
		if !strings.Contains(wide, want) {
			t.Errorf("the frame lacks %q:\n%s", want, wide)
		}
	}
	for _, row := range v.frame(40, false) {
		if utf8.RuneCountInString(row) > 40 || strings.Contains(row, "\x1b") {
			t.Errorf("row %q is wider than the terminal, or has colours", row)
		}
	}
	if coloured := strings.Join(v.frame(200, true), "\n"); !strings.Contains(coloured, "\x1b[31mfailure 120m ago\x1b[0m") {
		t.Errorf("a failure is not red:\n%q", coloured)
	}
	if d := v.next(now); d != looksAgain {
		t.Errorf("the next frame is due after %s, want %s", d, looksAgain)
	}
	v.pools[1].Wake = now.Add(time.Second)
	if d := v.next(now); d != time.Second {
		t.Errorf("the next frame is due after %s, want that of the pool that wakes first", d)
	}
	v.fault = errors.New("connection refused")
	if rows := v.frame(200, false); !strings.HasSuffix(rows[len(rows)-1], ": connection refused") || !strings.HasPrefix(rows[len(rows)-1], "This is of ") {
		t.Errorf("the last row is %q", rows[len(rows)-1])
	}
}
