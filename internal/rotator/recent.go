package rotator

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// recent is what was written in the last moments, as it was before. The events of a pass's own
// writes wake its pool while the cache has yet to hear of the last of them; to ask the API server
// then, as before any write, would cost half a dozen lists for nothing.
type recent struct {
	mu      sync.Mutex
	written map[rotation.Object]time.Time
}

// heard is when a cache has heard of a write, if ever.
const heard = 10 * time.Second

// note remembers an object that was created, or that a write has just moved on.
func (r *recent) note(was rotation.Object, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.written, func(_ rotation.Object, at time.Time) bool { return !within(heard, at, now) })
	if r.written == nil {
		r.written = map[rotation.Object]time.Time{}
	}
	r.written[was] = now
}

// outdates reports a plan that is made on what has been written since. A version never comes back;
// what was created can be deleted by anybody, and be missed again.
func (r *recent) outdates(plan []rotation.Step, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(plan, func(st rotation.Step) bool {
		at, ok := r.written[st.On]
		if st.On.Version == "" {
			return ok && within(again, at, now)
		}
		return ok && within(heard, at, now)
	})
}

func within(d time.Duration, from, now time.Time) bool { return !now.Before(from) && now.Sub(from) < d }
