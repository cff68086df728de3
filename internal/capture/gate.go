package capture

import (
	"fmt"
	"strings"
)

// Gate is the one gate. It says why an action with this token is stale under the claim that
// is current, or "" when it may go on. It is asked when an action is planned, when the
// journal is swept, and when an action is about to be executed (§4).
//
// Without a known epoch nothing passes. A release passes at the current epoch unless its
// holder is the current one; an acquisition only for the current holder.
func Gate(current Claim, t Token) Stale {
	switch {
	case current.Epoch == 0:
		return Stale(fmt.Sprintf("unknownEpoch: the current epoch of %s is unknown", t.Key))
	case t.Epoch != current.Epoch:
		return Stale(fmt.Sprintf("otherEpoch: it is of epoch %d, and the current one is %d", t.Epoch, current.Epoch))
	case t.Verb.Acquires() && t.Holder != current.Holder:
		return Stale(fmt.Sprintf("notHolder: it acquires for %s, and the holder is %s", t.Holder, current.Holder))
	case !t.Verb.Acquires() && t.Holder == current.Holder:
		return Stale(fmt.Sprintf("isHolder: it releases from %s, which is the holder", t.Holder))
	}
	return ""
}

// Stale is why the gate refuses: a word for machines, a colon, and the rest for people. "" is
// a pass.
type Stale string

// Why is the word: unknownEpoch, otherEpoch, notHolder or isHolder.
func (s Stale) Why() string {
	why, _, _ := strings.Cut(string(s), ":")
	return why
}
