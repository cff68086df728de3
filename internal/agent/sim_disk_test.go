package agent

import (
	"context"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
	"github.com/tasuki-io/tasuki/internal/journal/journaltest"
)

// simDisk is the journal of a node, and a copy of what was committed to it, with the times of
// the clock of the process, which the journal cannot keep.
type simDisk struct {
	journaltest.Memory
	node *simNode

	rows      map[string]capture.Action
	order     []string // of the last commit to each row
	markers   map[string]capture.Marker
	known     map[capture.Key]capture.Claim
	restoring bool
	writes    int
}

var _ Journal = (*simDisk)(nil)

// commit does a transaction. The world may come before and after it; an error leaves the agent
// not knowing whether it was done.
func (d *simDisk) commit(at string, do func() error) error {
	n := d.node
	n.pause(at)
	if n.one(200) {
		n.happens("disk fails before")
		return errSim
	}
	if err := do(); err != nil {
		return err
	}
	n.pause(at + "!")
	if n.one(200) {
		n.happens("disk fails after")
		n.note("%s: the disk has done the %s and says that it has not", n.name, at)
		return errSim
	}
	return nil
}

func (d *simDisk) wrote(what string) {
	d.writes++
	d.node.events++
	d.node.note("%s: %s", d.node.name, what)
}

// put takes note of a row as it was committed.
func (d *simDisk) put(row capture.Action, now time.Time) {
	id := row.ID()
	before := d.rows[id]
	row.Updated = now
	d.node.committed(d.node, before, row)
	d.rows[id] = row
	d.order = append(slices.DeleteFunc(d.order, func(o string) bool { return o == id }), id)
	if d.node.read {
		d.wrote(id + " is " + string(row.State))
	} else {
		d.wrote("")
	}
}

// Load reads what an earlier process has left.
func (d *simDisk) Load(ctx context.Context) (c journal.Contents, err error) {
	err = d.commit("load", func() (err error) {
		c, err = d.Memory.Load(ctx)
		return err
	})
	d.restoring = err == nil
	return c, err
}

// restored takes note of when a process has loaded what is there (see View.Restore).
func (d *simDisk) restored(now time.Time) {
	d.restoring = false
	for id, row := range d.rows {
		row.Deadline, row.NotBefore, row.Updated = now.Add(capture.ExecutorTime), now, now
		d.rows[id] = row
	}
}

func (d *simDisk) Note(ctx context.Context, current map[capture.Key]capture.Claim) error {
	return d.commit("note", func() error {
		told := false
		for k, c := range current {
			if c.Tells(d.known[k]) {
				d.known[k], told = c, true
			}
		}
		if told {
			d.wrote("notes epochs")
		}
		return d.Memory.Note(ctx, current)
	})
}

func (d *simDisk) Apply(ctx context.Context, plan *capture.Plan, now time.Time) (r journal.Receipt, err error) {
	err = d.commit("apply", func() (err error) {
		r, err = d.Memory.Apply(ctx, plan, now.Round(0))
		for _, row := range r.Actions {
			d.put(row, now)
		}
		for _, m := range r.Marked {
			d.markers[m.ID()] = m
			d.wrote("a marker")
		}
		for _, m := range r.Unmarked {
			d.node.unmarked(d.node, m)
			delete(d.markers, m.ID())
			d.wrote("no marker any more")
		}
		d.node.marked(d.node, r.Marked)
		return err
	})
	if err != nil {
		return journal.Receipt{}, err
	}
	return r, nil
}

func (d *simDisk) Begin(ctx context.Context, id string, now, deadline time.Time) (a capture.Action, stale capture.Stale, err error) {
	begun := false
	err = d.commit("begin", func() (err error) {
		a, stale, err = d.Memory.Begin(ctx, id, now.Round(0), deadline.Round(0))
		if row := a; err == nil {
			if stale == "" {
				begun = true
				d.node.begins(d.node, a)
				row.Deadline = deadline
			}
			d.put(row, now)
		}
		return err
	})
	if err != nil && begun { // the agent does not know, and asks nobody
		d.node.begun--
	}
	return a, stale, err
}

func (d *simDisk) End(ctx context.Context, begun capture.Action, e journal.Ending, now time.Time) (a capture.Action, err error) {
	live := e.NotBefore
	err = d.commit("end", func() (err error) {
		e.NotBefore = e.NotBefore.Round(0)
		a, err = d.Memory.End(ctx, begun, e, now.Round(0))
		if err == nil {
			row := a
			row.NotBefore = live
			d.put(row, now)
			if undone, ok := d.rows[a.Undoes]; ok && a.State == capture.Succeeded && undone.State == capture.Succeeded {
				undone.State = capture.RolledBack
				d.put(undone, now)
				d.node.happens("rolled back")
			}
			if d.Superseded(a.ID()) {
				d.node.happens("superseded success")
			}
		}
		return err
	})
	return a, err
}

// change is what a person writes.
func (d *simDisk) change(at string, write func(time.Time) ([]capture.Action, error)) func(context.Context, time.Time) ([]capture.Action, error) {
	return func(_ context.Context, now time.Time) (rows []capture.Action, err error) {
		err = d.commit(at, func() error {
			rows, err = write(now.Round(0))
			for _, row := range rows {
				d.put(row, now)
				d.node.happens(at)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return rows, nil
	}
}

func (n *simNode) approve() {
	n.ask(func(ctx context.Context) {
		var ids []string
		for _, id := range n.disk.order {
			if n.disk.rows[id].State == capture.Pending {
				ids = append(ids, id)
			}
		}
		_, _ = n.loop.changed(ctx, n.disk.change("approve", func(now time.Time) ([]capture.Action, error) { return n.disk.Approve(ctx, ids, "ann", now) }))
	})
}

func (n *simNode) hasten() {
	n.ask(func(ctx context.Context) {
		_, _ = n.loop.changed(ctx, n.disk.change("hasten", func(now time.Time) ([]capture.Action, error) {
			return n.disk.Hasten(ctx, slices.Clone(n.disk.order), now)
		}))
	})
}

func (n *simNode) undo(id string) {
	n.ask(func(ctx context.Context) {
		_, _ = n.loop.changed(ctx, n.disk.change("undo", func(now time.Time) ([]capture.Action, error) {
			row, stale, err := n.disk.Undo(ctx, id, "ann", now)
			if err != nil || stale != "" {
				return nil, err
			}
			return []capture.Action{row}, nil
		}))
	})
}
