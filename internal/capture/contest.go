package capture

import "time"

// Contest is an address that this node and another take from each other, though both are there
// to hold it: they have been told different things, as while a new configuration has reached
// only some of the hosts. The gate keeps every turn of it safe; a pause between the turns that
// grows keeps it from being one long interruption, and spares the provider.
type Contest struct {
	Key   Key
	Rival Holder
	Turns int // changes of holder that have followed each other
	// Until is when this node changes the holder the next time; until then it stays as it is.
	Until time.Time
}

const (
	freeTurns    = 6 // three by each of two: more than a change of mind takes
	longestPause = time.Minute
	peace        = 5 * time.Minute // whoever holds for so long is not contested
)

// pause is how long a holder is left in peace after so many turns.
func pause(turns int) time.Duration {
	return min(time.Second<<min((turns-freeTurns-1)/2, 6), longestPause)
}

// turn counts a change of holder.
func (l *Line) turn(now time.Time) {
	if now.Sub(l.Since) > peace {
		l.Turns = 0
	}
	l.Turns++
}

// paced is who is to hold a line for now: the one that holds it, while a contest pauses. Nobody
// waits for one that is dead or drained, and nobody keeps what no one is to hold.
func (d *deciding) paced(l *line, holder Holder) Holder {
	current := l.Claim.Holder
	if l.Turns <= freeTurns || current == holder || current == None || holder == None || current != d.self && holder != d.self {
		return holder
	}
	if l.member.Capture.Method == ProxyARP || l.absent(current, d.s.Absent) {
		return holder
	}
	c := Contest{Key: l.key, Rival: current, Turns: l.Turns, Until: l.Since.Add(pause(l.Turns))}
	if current == d.self {
		c.Rival = holder
	}
	d.contests = append(d.contests, c)
	if !d.now.Before(c.Until) {
		return holder
	}
	d.until(c.Until)
	return current
}

// absent reports a holder that may hold nothing at this time.
func (l *line) absent(holder Holder, absent Absent) bool {
	for i := range l.pool.Members {
		if m := &l.pool.Members[i]; Holder(m.Node) == holder && m.Domain() == l.key.Domain {
			return m.gone(absent)
		}
	}
	return false
}
