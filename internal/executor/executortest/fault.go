package executortest

import "math/rand/v2"

// Fault is how a call goes wrong. Its zero value answers nothing and closes the connection,
// as one that breaks before the request has arrived.
type Fault struct {
	// Carry has the call carried out all the same: what is lost is its answer.
	Carry bool
	// Status and Code are answered, if there is a Code.
	Status        int
	Code, Message string
	// Hang withholds the answer until the caller gives up.
	Hang bool
}

// Rule injects a fault into some calls, in the order in which they arrive.
type Rule struct {
	Match func(Call) bool // nil is every call
	Skip  int             // so many of them pass before
	Times int             // and so many get the fault; zero is all
	Share float64         // the part of those that get it, by the seed; zero is all
	Fault Fault

	matched, done int
}

// Changing matches the calls that change something.
func Changing(c Call) bool { return c.Changes() }

// Action matches the calls of one action.
func Action(name string) func(Call) bool { return func(c Call) bool { return c.Action == name } }

// strikes says whether a call gets the fault of the rule.
func (r *Rule) strikes(c Call, random *rand.Rand) bool {
	if r.Match != nil && !r.Match(c) {
		return false
	}
	r.matched++
	if r.matched <= r.Skip || r.Times > 0 && r.done >= r.Times || r.Share > 0 && random.Float64() >= r.Share {
		return false
	}
	r.done++
	return true
}
