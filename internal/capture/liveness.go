package capture

import "time"

// Liveness judges which nodes are dead, by what one process has seen of their leases. A node
// that was alive and is so no longer is dead. One that was never seen is not, until everybody
// has had time to show up: whoever starts first would otherwise take what is another's.
// Nothing is safe because of it; it only says when to be bold (ADR 0008 §5).
type Liveness struct {
	began time.Time
	seen  map[string]bool
	alive map[string]bool

	// Returned is when somebody who was dead was last seen to be alive again.
	Returned time.Time
}

// Look takes note of the nodes that are alive at this time.
func (l *Liveness) Look(alive []string, now time.Time) {
	if l.began.IsZero() {
		l.began, l.seen = now, map[string]bool{}
	}
	before := l.alive
	l.alive = make(map[string]bool, len(alive))
	for _, node := range alive {
		if l.seen[node] && !before[node] {
			l.Returned = now
		}
		l.alive[node], l.seen[node] = true, true
	}
}

// Unheard are those of the nodes that were never seen.
func (l *Liveness) Unheard(nodes []string) map[string]bool {
	unheard := map[string]bool{}
	for _, node := range nodes {
		unheard[node] = !l.seen[node]
	}
	return unheard
}

// Dead returns those of the nodes that are dead. With a fence, so long after the first look
// also those are that were never seen; the second result is when that will be, or zero. A store
// in which not every node has a lease has no fence.
func (l *Liveness) Dead(nodes []string, fence time.Duration, now time.Time) (dead map[string]bool, next time.Time) {
	if l.began.IsZero() {
		return nil, next // nothing was seen of anybody
	}
	dead = map[string]bool{}
	shown := fence > 0 && now.Sub(l.began) >= fence
	for _, node := range nodes {
		switch {
		case l.alive[node]:
		case l.seen[node], shown:
			dead[node] = true
		case fence > 0:
			next = l.began.Add(fence)
		}
	}
	return dead, next
}
