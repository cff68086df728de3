package page

import (
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// chart is the axis of time that the bars of a fleet share, in steps from 0 to wide.
type chart struct{ From, To time.Time }

const wide = 1000

// bar is the life of a node on the axis. What is not on it is -1.
type bar struct {
	Start, End             int // the part of the life that is on the axis
	Due, Rotates, Deadline int
	Lost                   int
}

func (c chart) bar(l rotation.Life) bar {
	b := bar{Start: max(0, c.place(l.Created)), Due: c.on(l.Due), Rotates: -1, Lost: -1, Deadline: c.on(l.Deadline)}
	end := l.Deadline
	if t := l.Turn; t != nil {
		if end = t.Start; t.Lost == "" {
			b.Rotates = c.on(t.Start)
		} else {
			b.Lost, b.Deadline = c.on(t.Start), -1
		}
	}
	if b.End = wide; !end.IsZero() {
		b.End = min(max(b.Start, c.place(end)), wide)
	}
	return b
}

// Width is that of the life.
func (b bar) Width() int { return b.End - b.Start }

// Left and Right are the arms of a cross.
func (b bar) Left() int  { return b.Lost - 6 }
func (b bar) Right() int { return b.Lost + 6 }

// place is where an instant is on the axis, or beside it.
func (c chart) place(t time.Time) int {
	return int(float64(t.Sub(c.From)) / float64(c.To.Sub(c.From)) * wide)
}

// on is where an instant is on the axis, -1 if it is not.
func (c chart) on(t time.Time) int {
	if t.IsZero() || t.Before(c.From) || t.After(c.To) {
		return -1
	}
	return c.place(t)
}
