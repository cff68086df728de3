package trial

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// ledger takes sightings one by one, in the order in which the API server wrote them, and
// keeps what follows from them. It knows no clock and no cluster.
type ledger struct {
	subject Subject
	tell    func(Happening)

	pool                              seen
	claims, nodes, pods, placeholders map[string]seen

	number int               // of the present sighting
	first  map[string]int    // node or pod -> the sighting in which it appeared
	born   map[string]moment // workload pod -> when it appeared

	past    []Account // ended, and followed by another
	account Account
}

// moment is when a pod appeared, and whether a rotation was under way.
type moment struct {
	at       time.Time
	rotating bool
}

func newLedger(s Subject, tell func(Happening)) *ledger {
	return &ledger{
		subject: s, tell: tell,
		claims: map[string]seen{}, nodes: map[string]seen{}, pods: map[string]seen{}, placeholders: map[string]seen{},
		first: map[string]int{}, born: map[string]moment{},
	}
}

// rotating tells whether there is an account to write: from the start of a rotation on,
// and after its end until the next one, as its last pods still have to become Ready.
func (l *ledger) rotating() bool { return !l.account.Started.IsZero() }

func (l *ledger) say(s sighting, h Happening) {
	h.At, h.Ready = s.at, l.ready()
	l.tell(h)
}

// ready counts the workload pods that are Ready and stay.
func (l *ledger) ready() int {
	n := 0
	for _, p := range l.pods {
		if p.ready && !p.leaving {
			n++
		}
	}
	return n
}

// observe enters one sighting.
func (l *ledger) observe(s sighting) {
	l.number++
	switch s.role {
	case rolePool:
		l.observePool(s)
	case roleClaim:
		was, known := enter(l.claims, s)
		l.observeClaim(s, was, known)
	case roleNode:
		was, known := enter(l.nodes, s)
		l.observeNode(s, was, known)
		l.lookForCapacity(s)
	case rolePlaceholder:
		was, known := enter(l.placeholders, s)
		l.observePlaceholder(s, was, known)
		l.lookForCapacity(s)
	case rolePod:
		was, known := enter(l.pods, s)
		l.observePod(s, was, known)
		if l.rotating() {
			l.account.MostNotReady = max(l.account.MostNotReady, l.subject.Replicas-l.ready())
		}
	}
}

// enter puts the new state of an object in place and returns the last one.
func enter(all map[string]seen, s sighting) (was seen, known bool) {
	was, known = all[s.name]
	if s.gone {
		delete(all, s.name)
	} else {
		all[s.name] = s.seen
	}
	return was, known
}

func (l *ledger) observePool(s sighting) {
	was, now := l.pool.annotations, s.annotations
	l.pool = s.seen
	before, active := was[rotation.AnnotationActive], now[rotation.AnnotationActive]
	if path := now[rotation.AnnotationSurgePath]; path != "" {
		l.account.SurgePath = path
	}
	if before == active {
		return
	}
	if before != "" {
		l.account.Ended = s.at
		l.account.Total = s.at.Sub(l.account.Started)
		switch {
		case now[rotation.AnnotationLastRotation] != was[rotation.AnnotationLastRotation]:
			l.account.Outcome = Success
		case now[rotation.AnnotationLastFailure] != was[rotation.AnnotationLastFailure]:
			l.account.Outcome = Failure
		default:
			l.account.Outcome = Abandoned
		}
		l.say(s, Happening{Kind: RotationEnded, Claim: before, Node: l.account.OldNode, Outcome: l.account.Outcome})
	}
	if active != "" {
		if l.rotating() {
			l.past = append(l.past, l.account)
		}
		l.account = Account{
			Replicas: l.subject.Replicas, Claim: active, OldNode: l.claims[active].node, Started: s.at,
			MostNotReady: l.subject.Replicas - l.ready(),
		}
		l.say(s, Happening{Kind: RotationStarted, Claim: active, Node: l.account.OldNode})
	}
}

func (l *ledger) observeClaim(s sighting, was seen, known bool) {
	if !known && !s.gone {
		if l.rotating() && s.name != l.account.Claim {
			l.account.ClaimsCreated = append(l.account.ClaimsCreated, s.name)
		}
		l.say(s, Happening{Kind: ClaimLaunched, Claim: s.name})
	}
	replaced := l.rotating() && s.name == l.account.Claim
	if replaced && s.node != "" {
		l.account.OldNode = s.node
	}
	if s.leaving && !was.leaving {
		if replaced {
			l.account.Deleted = s.at
			l.judgeDeletion()
		}
		l.say(s, Happening{Kind: ClaimDeleted, Claim: s.name, Node: s.node})
	}
	if s.gone && known {
		if replaced {
			l.account.Drained = s.at
			if !l.account.Deleted.IsZero() {
				l.account.Drain = s.at.Sub(l.account.Deleted)
			}
		}
		l.say(s, Happening{Kind: ClaimGone, Claim: s.name, Node: was.node})
	}
}

// judgeDeletion holds the deletion of the NodeClaim against the order of a rotation:
// first the capacity, then its release, then the drain.
func (l *ledger) judgeDeletion() {
	if l.account.Capacity.IsZero() {
		l.account.Disorder = append(l.account.Disorder, fmt.Sprintf(
			"NodeClaim %s was deleted before a placeholder ran on another Ready node", l.account.Claim))
	}
	for name, p := range l.placeholders {
		if p.annotations[rotation.AnnotationSurgeFor] == l.account.Claim {
			l.account.Disorder = append(l.account.Disorder, fmt.Sprintf(
				"NodeClaim %s was deleted before placeholder %s was gone", l.account.Claim, name))
		}
	}
}

func (l *ledger) observeNode(s sighting, was seen, known bool) {
	if !known && !s.gone {
		l.first["node/"+s.name] = l.number
		l.say(s, Happening{Kind: NodeAppeared, Node: s.name, Claim: l.claimOn(s.name)})
	}
	if s.gone {
		if known {
			l.say(s, Happening{Kind: NodeGone, Node: s.name})
		}
		return
	}
	if s.ready && !was.ready {
		l.say(s, Happening{Kind: NodeReady, Node: s.name, Claim: l.claimOn(s.name)})
	}
	mark, before := s.annotations[rotation.AnnotationSurgeFor], was.annotations[rotation.AnnotationSurgeFor]
	switch {
	case mark != "" && before == "":
		l.say(s, Happening{Kind: NodeProtected, Node: s.name, Claim: mark, Cordoned: s.cordoned})
	case mark == "" && before != "":
		l.say(s, Happening{Kind: NodeReleased, Node: s.name, Claim: before})
	}
}

func (l *ledger) claimOn(node string) string {
	for name, c := range l.claims {
		if c.node == node {
			return name
		}
	}
	return ""
}

func (l *ledger) observePlaceholder(s sighting, was seen, known bool) {
	claim := s.annotations[rotation.AnnotationSurgeFor]
	if !known && !s.gone {
		l.say(s, Happening{Kind: PlaceholderCreated, Pod: s.name, Claim: claim, Requests: s.requests})
	}
	if s.node != "" && was.node == "" && !s.gone {
		l.say(s, Happening{Kind: PlaceholderBound, Pod: s.name, Claim: claim, Node: s.node})
	}
	if !s.gone || !known {
		return
	}
	h := Happening{Kind: PlaceholderGone, Pod: s.name, Claim: claim, Node: was.node}
	if l.pool.annotations[rotation.AnnotationActiveState] != rotation.StateDraining {
		h.Kind = PlaceholderLost
		if l.rotating() && l.account.Ended.IsZero() && claim == l.account.Claim {
			l.account.PlaceholdersLost++
			l.account.Capacity, l.account.SurgeWait, l.account.NewNode = time.Time{}, 0, ""
		}
	}
	l.say(s, h)
}

// lookForCapacity finds the moment from which the drain's capacity is really there.
func (l *ledger) lookForCapacity(s sighting) {
	if !l.rotating() || !l.account.Capacity.IsZero() {
		return
	}
	for _, p := range l.placeholders {
		host, ok := l.nodes[p.node]
		if p.annotations[rotation.AnnotationSurgeFor] != l.account.Claim || !p.running || p.leaving ||
			!ok || !host.ready || host.leaving || host.name == l.account.OldNode {
			continue
		}
		l.account.Capacity, l.account.NewNode = s.at, host.name
		l.account.SurgeWait = s.at.Sub(l.account.Started)
		l.say(s, Happening{Kind: CapacityReady, Pod: p.name, Node: host.name, Claim: l.claimOn(host.name)})
	}
}

func (l *ledger) observePod(s sighting, was seen, known bool) {
	if s.gone {
		if known && !was.leaving {
			l.leave(s, was)
		}
		delete(l.first, "pod/"+s.name)
		delete(l.born, s.name)
		return
	}
	if !known {
		l.first["pod/"+s.name] = l.number
		l.born[s.name] = moment{at: s.at, rotating: l.rotating()}
		l.say(s, Happening{Kind: PodCreated, Pod: s.name})
	}
	if s.node != "" && was.node == "" {
		l.bind(s)
	}
	if s.ready && !was.ready {
		l.say(s, Happening{Kind: PodReady, Pod: s.name, Node: s.node})
	}
	if s.leaving && !was.leaving {
		l.leave(s, s.seen)
	}
}

func (l *ledger) leave(s sighting, p seen) {
	if l.rotating() && p.node != "" && p.node == l.account.OldNode {
		l.account.Evicted++
	}
	l.say(s, Happening{Kind: PodLeaving, Pod: p.name, Node: p.node})
}

// bind accounts for the time that a pod of the rotation was unbound, and for whether it
// waited for a node that was not there when the pod came.
func (l *ledger) bind(s sighting) {
	born := l.born[s.name]
	pending := s.at.Sub(born.at)
	if born.rotating && l.rotating() {
		if pending >= l.account.LongestPending {
			l.account.LongestPending, l.account.PendingPod = pending, s.name
		}
		host := l.first["node/"+s.node]
		if s.node != l.account.NewNode && host > l.first["pod/"+s.name] {
			l.account.Waited = append(l.account.Waited, fmt.Sprintf("pod %s was unbound for %s until node %s appeared",
				s.name, pending.Round(100*time.Millisecond), s.node))
		}
	}
	l.say(s, Happening{Kind: PodBound, Pod: s.name, Node: s.node, Pending: pending})
}

// accounts returns the account of every rotation so far, the present one last.
func (l *ledger) accounts() []Account {
	all := slices.Clone(l.past)
	if !l.rotating() {
		return all
	}
	a := l.account
	a.Unready = l.subject.Replicas - l.ready()
	a.ClaimsCreated, a.Waited, a.Disorder = slices.Clone(a.ClaimsCreated), slices.Clone(a.Waited), slices.Clone(a.Disorder)
	for _, name := range slices.Sorted(maps.Keys(l.pods)) {
		if p := l.pods[name]; p.node == "" && !p.leaving && l.born[name].rotating {
			a.Unbound = append(a.Unbound, name)
		}
	}
	return append(all, a)
}
