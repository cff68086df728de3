package claimstest

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// What the checker says of histories that are easy to judge.
func TestWhatAHistoryAllows(t *testing.T) {
	k, none, one, two := key(1), capture.Claim{}, claim(1, "a"), claim(1, "b")
	op := func(from, to int64, c call, a answer) porcupine.Operation {
		c.key = k
		return porcupine.Operation{Input: c, Call: from, Output: a, Return: to}
	}
	bump := func(to capture.Claim) call { return call{bump: true, from: none, to: to} }
	for what, c := range map[string]struct {
		calls []porcupine.Operation
		ok    bool
	}{
		"a read after a bump":                {[]porcupine.Operation{op(1, 2, bump(one), answer{done: true}), op(3, 4, call{}, answer{claim: one})}, true},
		"a stale read after a bump":          {[]porcupine.Operation{op(1, 2, bump(one), answer{done: true}), op(3, 4, call{}, answer{claim: none})}, false},
		"a stale read during a bump":         {[]porcupine.Operation{op(1, 4, bump(one), answer{done: true}), op(2, 3, call{}, answer{claim: none})}, true},
		"two winners":                        {[]porcupine.Operation{op(1, 4, bump(one), answer{done: true}), op(2, 3, bump(two), answer{done: true})}, false},
		"no winner":                          {[]porcupine.Operation{op(1, 4, bump(one), answer{}), op(2, 3, bump(two), answer{})}, false},
		"an answer that is lost, but done":   {[]porcupine.Operation{op(1, 99, bump(one), answer{lost: true}), op(3, 4, call{}, answer{claim: one})}, true},
		"an answer that is lost, never done": {[]porcupine.Operation{op(1, 99, bump(one), answer{lost: true}), op(3, 4, call{}, answer{claim: none})}, true},
		"an answer that is lost, and undone": {[]porcupine.Operation{
			op(1, 99, bump(one), answer{lost: true}), op(3, 4, call{}, answer{claim: one}), op(5, 6, call{}, answer{claim: none}),
		}, false},
	} {
		if got := porcupine.CheckOperations(model, c.calls); got != c.ok {
			t.Errorf("%s: %t", what, got)
		}
	}
}
