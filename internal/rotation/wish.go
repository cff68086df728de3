package rotation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Ask is the step that notes down what a person asks for, RequestWindow or RequestNow, or the
// error that says why that would come to nothing. A frozen pool is refused, too: the freeze is
// somebody's word, and a request that begins when it ends is a surprise by then.
func Ask(s Snapshot, name, what, by string, now time.Time) (Step, error) {
	c, p, pool := s.claim(name), s.Governance.Policy, s.NodePool.Name
	switch {
	case c == nil:
		return Step{}, fmt.Errorf("there is no NodeClaim %s in NodePool %s", name, pool)
	case !c.Deleting.IsZero():
		return Step{}, fmt.Errorf("NodeClaim %s is being deleted since %s: there is nothing left to rotate", name, stamp(c.Deleting))
	case s.NodePool.Annotations[AnnotationActive] == name:
		return Step{}, fmt.Errorf("NodeClaim %s is on the rotation already", name)
	case p == nil:
		return Step{}, fmt.Errorf("NodePool %s is not governed, and none of its nodes is rotated: %s", pool, s.ungoverned("").Detail)
	}
	for g := range s.closedGates(p, c, now) {
		switch g.Reason {
		case ReasonPolicyInvalid, ReasonStatic, ReasonInfeasible:
			return Step{}, fmt.Errorf("no node of NodePool %s is rotated (%s): %s", pool, g.Reason, g.Detail)
		case ReasonFrozen:
			return Step{}, fmt.Errorf("NodePool %s is frozen (%s): end that with tasuki unfreeze %s, or ask again when it is over", pool, g.Detail, pool)
		}
	}
	asked := *c // as it would be judged
	asked.Annotations = maps.Clone(c.Annotations)
	if asked.Annotations == nil {
		asked.Annotations = map[string]string{}
	}
	asked.Annotations[AnnotationRequested] = what
	switch standing, _, err := s.standing(p, &asked, now); standing {
	case Never, Expired:
		return Step{}, fmt.Errorf("NodeClaim %s is never rotated (%s): %s", name, standing, s.stands(p, c, standing, time.Time{}, nil, now).Detail)
	case Unreadable:
		return Step{}, fmt.Errorf("NodeClaim %s cannot be judged: %w", name, err)
	}
	if was := c.requested(); was == what || was == RequestNow {
		return Step{}, fmt.Errorf("NodeClaim %s is already requested (%s=%s, by %s): kubectl annotate nodeclaim %s %s- takes that back",
			name, short(AnnotationRequested), was, cmp.Or(c.Annotations[AnnotationRequestedBy], "somebody"), name, AnnotationRequested)
	}
	return Step{On: c.Object, Set: map[string]string{AnnotationRequested: what, AnnotationRequestedBy: by}}, nil
}

// ErrShortens refuses to end a freeze sooner than it says.
var ErrShortens = errors.New("that would shorten the freeze")

// Freeze is the step that freezes a pool until an instant, to whole seconds, and what its freeze
// was: "none" without one. It sets nothing if the pool is frozen until then already. Unless
// shorten is set, a freeze that ends later is refused with ErrShortens, and so is one that cannot
// be read, as it does not end.
func Freeze(pool NodePool, until time.Time, shorten bool, now time.Time) (step Step, was string, err error) {
	until = until.UTC().Truncate(time.Second)
	if !now.Before(until) {
		return Step{}, "", fmt.Errorf("%s is not after now, %s: a freeze until then is none", stamp(until), stamp(now))
	}
	was = frozenNow(pool)
	before, err := readStamp(pool.Annotations, AnnotationFreeze)
	switch {
	case err != nil && !shorten:
		return Step{}, was, fmt.Errorf("%w: NodePool %s is frozen without an end, as its freeze %q cannot be read", ErrShortens, pool.Name, was)
	case err == nil && until.Before(before) && !shorten:
		return Step{}, was, fmt.Errorf("%w: NodePool %s is frozen until %s", ErrShortens, pool.Name, stamp(before))
	case err == nil && until.Equal(before):
		return Step{}, was, nil
	}
	return Step{On: pool.Object, Set: map[string]string{AnnotationFreeze: stamp(until)}}, was, nil
}

// Unfreeze is the step that takes the freeze off a pool, and what it was. It clears nothing if
// there is none.
func Unfreeze(pool NodePool) (step Step, was string) {
	return Step{On: pool.Object, Clear: present(pool.Annotations, AnnotationFreeze)}, frozenNow(pool)
}

// frozenNow is the freeze of a pool as it is written.
func frozenNow(pool NodePool) string {
	if v, ok := pool.Annotations[AnnotationFreeze]; ok {
		return v
	}
	return "none"
}

// Changes reports a step that writes something.
func (st Step) Changes() bool {
	return len(st.Set)+len(st.Clear) > 0
}
