package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// simLaws watch a world and remember the first invariant that it breaks. They know nothing of
// Decide and Gate.
type simLaws struct {
	holders map[simEpoch]capture.Holder
	backups bool // the store was once restored
}

type simEpoch struct {
	store string
	key   capture.Key
	epoch capture.Epoch
}

func (s *sim) breaks(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
		s.note("BROKEN: %s", s.broken)
	}
}

// restored is what a backup in the place of the store excuses: epochs that were given away
// since are forgotten, and given away again by whoever has not heard of them.
func (l *simLaws) restored() { l.backups = true }

func takes(v capture.Verb) bool { return v == capture.Assign || v == capture.EnableForwarding }

// I1, I2: an epoch rises by one, and has one holder.
func (s *sim) bumped(n *simNode, b capture.Bump) {
	reseed := b.Why == capture.CauseReseed
	if b.To.Epoch != b.From.Epoch+1 && !reseed || b.To.Epoch <= b.From.Epoch {
		s.breaks("I1: the epoch of %s goes from %d to %d", b.Key, b.From.Epoch, b.To.Epoch)
	}
	if b.To.Holder == b.From.Holder && !reseed {
		s.breaks("I1: the epoch of %s rises although %s keeps it", b.Key, b.To.Holder)
	}
	if reseed {
		s.happens("reseed")
		if !s.laws.backups && !n.usedUp(b) {
			s.breaks("I1: %s reseeds %s, and the store has lost nothing", n.name, b.Key)
		}
	}
	if known := n.disk.known[b.Key]; known.Epoch > b.From.Epoch {
		s.happens("law: above what the journal knows")
		if b.To.Epoch <= known.Epoch {
			s.breaks("I1: %s raises %s to %d, and knows %d", n.name, b.Key, b.To.Epoch, known.Epoch)
		}
	}
	if b.To.Holder == capture.None {
		s.happens("through none")
	}
	s.seized(n, b, reseed)
	at := simEpoch{s.store.name, b.Key, b.To.Epoch}
	if h, ok := s.laws.holders[at]; ok && h != b.To.Holder {
		s.breaks("I2: epoch %d of %s has two holders, %s and %s", b.To.Epoch, b.Key, h, b.To.Holder)
	}
	s.laws.holders[at] = b.To.Holder
}

// seized says of a node that takes from another that it may (spec C10): a live holder that is not
// drained loses to nobody but one with a better priority.
func (s *sim) seized(n *simNode, b capture.Bump, reseed bool) {
	from := s.find(string(b.From.Holder))
	if from == nil || from == n || n.host != nil || b.To.Holder != capture.Holder(n.name) || reseed {
		return
	}
	var ours, theirs *capture.Member
	for i := range n.loop.config.Pools {
		for j := range n.loop.config.Pools[i].Members {
			switch m := &n.loop.config.Pools[i].Members[j]; m.Node {
			case n.name:
				ours = m
			case from.name:
				theirs = m
			}
		}
	}
	if ours == nil || theirs == nil || theirs.Drain || n.loop.drained[from.name] || ours.Priority < theirs.Priority {
		return
	}
	if s.happens("seized"); slices.Contains(n.alive, from.name) {
		s.breaks("C10: %s takes %s from %s, which is alive", n.name, b.Key, from.name)
	}
}

// usedUp says whether a node has acted on the same address at the epochs that it jumps over: a
// placement group had another name then.
func (n *simNode) usedUp(b capture.Bump) bool {
	for _, row := range n.disk.rows {
		if row.Key.Pool == b.Key.Pool && row.Key.Address == b.Key.Address && row.Key.Domain != b.Key.Domain && row.Epoch == b.To.Epoch-1 {
			return true
		}
	}
	return false
}

// I7: what has succeeded never runs again, and what is over stays so.
func (s *sim) committed(n *simNode, before, after capture.Action) {
	switch before.State {
	case capture.Succeeded:
		if after.State != capture.RolledBack {
			s.breaks("I7: %s has succeeded and becomes %s", after.ID(), after.State)
		}
	case capture.Skipped, capture.RolledBack:
		s.breaks("over: %s was %s and becomes %s", after.ID(), before.State, after.State)
	case capture.Running:
		if now := n.readings[len(n.readings)-1]; after.State == capture.Approved && after.Attempts == before.Attempts && after.Unanswered == before.Unanswered && after.NotBefore.IsZero() {
			if s.happens("resume"); now.Before(before.Deadline) {
				s.breaks("deadline: %s is repeated %s before its attempt has certainly ended", after.ID(), before.Deadline.Sub(now))
			}
		}
	}
	switch {
	case after.State == capture.Succeeded && after.Attempts == 0:
		s.breaks("over: %s succeeds without an attempt", after.ID())
	case after.State == capture.Skipped:
		s.happens("skip")
	case after.State == capture.Failed:
		s.happens("failed")
	case after.State == capture.Pending && after.Repair > 0:
		s.happens("repair")
	}
	if strings.Contains(after.Reason, simSecret) {
		s.breaks("I12: the journal of %s has a secret", n.name)
	}
}

// Markers are for releases that are planned.
func (s *sim) marked(n *simNode, marks []capture.Marker) {
	for _, m := range marks {
		if row, there := n.disk.rows[m.ID()]; !there || takes(m.Verb) || row.Verb != m.Verb {
			s.breaks("marker: %s marks %s, which is no release that it has planned", n.name, m.ID())
		}
		s.happens("marker")
	}
}

// A marker goes when its release has succeeded, or when another epoch or holder makes it stale.
func (s *sim) unmarked(n *simNode, m capture.Marker) {
	known := n.disk.known[m.Key]
	if known.Epoch != m.Epoch || known.Holder == m.Holder {
		return
	}
	for _, row := range n.disk.rows {
		if row.Key == m.Key && row.Verb == m.Verb && row.Epoch == m.Epoch && row.Target == m.Target && row.Repair >= m.Repair &&
			(row.State == capture.Succeeded || row.State == capture.RolledBack) {
			return
		}
	}
	s.breaks("marker: %s drops the marker %s, whose release is %s at epoch %d", n.name, m.ID(), n.disk.rows[m.ID()].State, known.Epoch)
}

// An attempt begins when the policy permits, in a budget, after the last one about the same
// line has certainly ended.
func (s *sim) begins(n *simNode, a capture.Action) {
	id := a.ID()
	before, now := n.disk.rows[id], n.readings[len(n.readings)-1]
	if n.policy.forbids(&a, n.readings) {
		s.breaks("policy: %s begins %s, and the policy (%+v) forbids it", n.name, id, n.policy)
	}
	if n.policy.approval && before.State == capture.Pending {
		s.breaks("policy: %s begins %s, and nobody has approved it", n.name, id)
	}
	if now.Before(before.NotBefore) {
		s.breaks("backoff: %s begins %s %s before its backoff is over", n.name, id, before.NotBefore.Sub(now))
	}
	for _, o := range n.disk.rows {
		if o.Key == a.Key && o.State == capture.Running && now.Before(o.Deadline) {
			s.breaks("busy: %s begins %s while %s is under way", n.name, id, o.ID())
		}
		if n.host == nil && a.Verb == capture.DisableForwarding && o.Target == a.Target && o.Verb == capture.Assign && o.State == capture.Succeeded && n.disk.captured(o) {
			s.breaks("C7: %s begins %s while it has captured %s there", n.name, id, o.Key.Address)
		}
	}
	if !slices.Contains(n.nics(), a.NIC) {
		s.breaks("I5: %s is on somebody else's NIC", id)
	}
	if n.begun++; n.begun > n.policy.budget {
		s.breaks("budget: %s begins %d actions in a run, and may %d", n.name, n.begun, n.policy.budget)
	}
	n.fresh = append(n.fresh, simTry{id, a.Attempts})
}

// captured reports whether the last success about an address on a NIC is that of its assignment.
func (d *simDisk) captured(a capture.Action) bool {
	for _, id := range slices.Backward(d.order) {
		if o := d.rows[id]; o.Key == a.Key && o.Target == a.Target && o.State == capture.Succeeded {
			return o.Verb == capture.Assign
		}
	}
	return false
}

// I3, I5, I8: a call is made under the claim that was read since the attempt began, and since its
// last call. It takes for the holder, or from somebody who is not.
func (s *sim) asked(n *simNode, q executor.Request) {
	read := s.current.read
	s.current.read = nil
	row, ok := n.disk.rows[q.ID]
	holder := capture.Holder(n.name)
	switch {
	case !ok:
		s.breaks("begun: %s calls %s, which is not in its journal", n.name, q.ID)
	case read == nil:
		s.breaks("I3: %s calls %s without a read of the store", n.name, q.ID)
	case q.DryRun:
	case n.clock >= n.until:
		s.breaks("C10: %s calls %s, and its lease may have ended", n.name, q.ID)
	case read.Epoch != row.Epoch:
		s.breaks("I3: %s calls %s at epoch %d", n.name, q.ID, read.Epoch)
	case takes(row.Verb) && read.Holder != holder:
		s.breaks("I3: %s calls %s, and the holder is %s", n.name, q.ID, read.Holder)
	case !takes(row.Verb) && read.Holder == holder:
		s.breaks("I5: %s calls %s, and is the holder", n.name, q.ID)
	case !slices.Contains(n.nics(), q.NIC):
		s.breaks("I5: %s calls %s about somebody else's NIC", n.name, q.ID)
	case s.current.try.id != q.ID:
		s.breaks("begun: %s calls %s, which was never begun", n.name, q.ID)
	case !q.ReadFirst && s.current.try.attempt > 1:
		s.breaks("again: %s calls %s again and does not ask for a look first", n.name, q.ID)
	}
	if row.Undoes != "" {
		s.happens("undo runs")
	}
	if row.State != capture.Running {
		s.happens("given up and calls")
	}
	if current := s.store.claims[row.Key]; current.Epoch != row.Epoch {
		s.happens("overtaken between read and call")
	}
}
