package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tasuki-io/tasuki/internal/claims"
)

// changing is a store that always has something new, and cannot say what.
type changing struct {
	claims.Store
	waits, passes atomic.Int64
}

func (s *changing) Wait(context.Context, claims.Revision) error {
	s.waits.Add(1)
	return nil
}

func (s *changing) Changes(context.Context, claims.Revision) (claims.Changes, error) {
	s.passes.Add(1)
	return claims.Changes{}, errors.New("the store is in trouble")
}

// Something has changed in the store, and passes fail that would take it in: they ask again after
// a while, and the watch does not ask at all.
func TestWhilePassesFailTheStoreIsNotAskedByTheWatch(t *testing.T) {
	s := newSite(t)
	h := s.host("a", s.pool(automatic))
	store := &changing{Store: h.Agent.store}
	h.Agent.store = store
	h.runs()
	eventually(t, "some passes", func() bool { return store.passes.Load() > 4 })
	if n := store.waits.Load(); n > 1 {
		t.Errorf("the watch has asked %d times", n)
	}
}
