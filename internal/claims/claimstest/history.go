package claimstest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// History is what clients asked of a store and were told, with the times of both. It is
// checked against one store that does one thing at a time.
type History struct {
	mu    sync.Mutex
	calls []porcupine.Operation
	begun time.Time
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{begun: time.Now()} }

// call is what a client asked of one key, and answer what it was told.
type call struct {
	key      capture.Key
	bump     bool
	from, to capture.Claim
}

type answer struct {
	claim capture.Claim
	done  bool
	lost  bool // it may have been done, or be done yet
}

// Claim reads a claim and writes it down. A read that fails says nothing.
func (h *History) Claim(ctx context.Context, s claims.Store, client int, k capture.Key) (capture.Claim, error) {
	at := time.Since(h.begun)
	got, err := s.Claim(ctx, k)
	if err == nil {
		h.write(client, at, call{key: k}, answer{claim: got})
	}
	return got, err
}

// Bump bumps one key and writes it down.
func (h *History) Bump(ctx context.Context, s claims.Store, client int, k capture.Key, from, to capture.Claim) (bool, error) {
	at := time.Since(h.begun)
	done, err := s.Bump(ctx, []capture.Bump{{Key: k, From: from, To: to, Why: capture.CauseHolder}})
	got := answer{lost: err != nil}
	if err == nil {
		got.done = done[0]
	}
	h.write(client, at, call{k, true, from, to}, got)
	return got.done, err
}

func (h *History) write(client int, at time.Duration, c call, a answer) {
	end := int64(time.Since(h.begun))
	if a.lost {
		end = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: c, Call: int64(at), Output: a, Return: end})
}

// Check fails the test when no single store could have answered like that.
func (h *History) Check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(model, h.calls, patience)
	if result != porcupine.Ok {
		picture := t.ArtifactDir() + "/history.html"
		if err := porcupine.VisualizePath(model, info, picture); err != nil {
			t.Error(err)
		}
		t.Errorf("of %d calls, no order in which one store could have answered like that: %s; see %s (kept with -artifacts)", len(h.calls), result, picture)
	}
}

// model is a store as it should be: one line of epochs per key.
var model = porcupine.Model{
	Partition: func(calls []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := map[capture.Key][]porcupine.Operation{}
		for _, c := range calls {
			k := c.Input.(call).key
			byKey[k] = append(byKey[k], c)
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return capture.Claim{} },
	Step: func(state, input, output any) (bool, any) {
		now, c, a := state.(capture.Claim), input.(call), output.(answer)
		fits := now == c.from
		switch {
		case !c.bump:
			return a.claim == now, now
		case fits && (a.done || a.lost):
			return true, c.to
		}
		return a.lost || fits == a.done, now
	},
	DescribeOperation: func(input, output any) string {
		c, a := input.(call), output.(answer)
		switch {
		case !c.bump:
			return fmt.Sprintf("claim: %s", a.claim)
		case a.lost:
			return fmt.Sprintf("bump %s -> %s: no answer", c.from, c.to)
		}
		return fmt.Sprintf("bump %s -> %s: %t", c.from, c.to, a.done)
	},
	DescribeState: func(state any) string { return state.(capture.Claim).String() },
}

// Nine clients of three processes read and bump two keys as fast as they can.
func history(t *testing.T, s Subject) {
	h := NewHistory()
	handles := []claims.Store{s.Open(t), s.Open(t), s.Open(t)}
	var wg sync.WaitGroup
	for client := range 3 * len(handles) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 0))
			store, seen := handles[client%len(handles)], map[capture.Key]capture.Claim{}
			for range 40 {
				k := key(rng.IntN(2))
				var err error
				if rng.IntN(2) == 0 {
					seen[k], err = h.Claim(t.Context(), store, client, k)
				} else {
					_, err = h.Bump(t.Context(), store, client, k, seen[k], claim(seen[k].Epoch+1, name(client)))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	h.Check(t)
}
