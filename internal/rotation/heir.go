package rotation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// born is a claim that replaces another one, with as much room.
func (f *play) born(after *actor, now time.Time) *actor {
	name := heir(after.Name, func(name string) bool { return f.claims[name] != nil })
	pool := f.pool.NodePool
	return &actor{NodeClaim: NodeClaim{
		Object: Object{Kind: KindNodeClaim, Name: name, UID: name}, Created: now.Truncate(time.Second),
		ExpireAfter: pool.ExpireAfter, GracePeriod: pool.GracePeriod, Requirements: pool.Requirements,
		Allocatable: after.Allocatable,
	}}
}

// heir is a name that no NodeClaim can have: that of the claim that it replaces, and how many
// there were before it.
func heir(of string, taken func(string) bool) string {
	base, generation, _ := strings.Cut(of, "+")
	n, _ := strconv.Atoi(generation)
	for {
		n++
		if name := fmt.Sprintf("%s+%d", base, n); !taken(name) {
			return name
		}
	}
}
