package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
)

// claimLog is what the cluster was told of claims and leases, in the order of its revisions,
// as a watch beside all agents sees it.
type claimLog struct {
	mu     sync.Mutex
	lines  map[string][]claim // by key, as logs write it
	ends   map[string]time.Time
	broken []string // what no claim may do
}

// claim is one that is current from an epoch on. Since then, at the latest, everybody who
// reads the cluster is told it.
type claim struct {
	Epoch  uint64 `json:"epoch"`
	Holder string `json:"holder"`

	seen time.Time
}

const (
	claimKeys = "/tasuki/claims/"
	aliveKeys = "/tasuki/alive/"
)

func watchClaims(t testing.TB, c *etcdtest.Cluster) *claimLog {
	l := &claimLog{lines: map[string][]claim{}, ends: map[string]time.Time{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for from := int64(1); ctx.Err() == nil; {
			attempt, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
			for r := range c.Admin.Watch(attempt, "/tasuki/", clientv3.WithPrefix(), clientv3.WithRev(from)) {
				for _, e := range r.Events {
					l.take(e, time.Now())
					from = e.Kv.ModRevision + 1
				}
			}
			cancel()
			select { // a member without a leader ends the watch
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return l
}

func (l *claimLog) take(e *clientv3.Event, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := string(e.Kv.Key)
	if node, ok := strings.CutPrefix(key, aliveKeys); ok && e.Type == clientv3.EventTypeDelete {
		l.ends[node] = now
	}
	parts, ok := strings.CutPrefix(key, claimKeys)
	if !ok {
		return
	}
	part := strings.Split(parts, "/") // as path-escaped words
	for i, p := range part {
		if part[i], _ = url.PathUnescape(p); part[i] == "" {
			part[i] = "-"
		}
	}
	name := part[0] + "/" + part[1] + "@" + part[2]
	lines := l.lines[name]
	next := claim{seen: now}
	if err := json.Unmarshal(e.Kv.Value, &next); err != nil || e.Type == clientv3.EventTypeDelete {
		l.broken = append(l.broken, fmt.Sprintf("I1: the claim of %s was deleted, or is %q", name, e.Kv.Value))
		return
	}
	was := claim{}
	if len(lines) > 0 {
		was = lines[len(lines)-1]
	}
	if next.Epoch != was.Epoch+1 {
		l.broken = append(l.broken, fmt.Sprintf("I1, C1: %s goes from epoch %d (%s) to epoch %d (%s)", name, was.Epoch, was.Holder, next.Epoch, next.Holder))
	}
	l.lines[name] = append(lines, next)
}

// history is all that was ever claimed of a key.
func (l *claimLog) history(key string) []claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[key][:len(l.lines[key]):len(l.lines[key])]
}

// at is the claim of a key at an epoch, and the next one, which is zero while there is none.
func (l *claimLog) at(key string, epoch uint64) (is, next claim) {
	for _, c := range l.history(key) {
		switch c.Epoch {
		case epoch:
			is = c
		case epoch + 1:
			next = c
		}
	}
	return is, next
}

// current are the claims of all addresses.
func (l *claimLog) current() map[netip.Addr]claim {
	all := map[netip.Addr]claim{}
	for a, line := range l.addresses() {
		all[a] = line[len(line)-1]
	}
	return all
}

// addresses are the claims of all addresses since the beginning.
func (l *claimLog) addresses() map[netip.Addr][]claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[netip.Addr][]claim{}
	for key, line := range l.lines {
		if a, ok := addressIn(key); ok {
			all[a] = line[:len(line):len(line)]
		}
	}
	return all
}

// addressIn is the address of a key, of which that of a NIC has none.
func addressIn(key string) (netip.Addr, bool) {
	_, after, _ := strings.Cut(key, "/")
	text, _, _ := strings.Cut(after, "@")
	a, err := netip.ParseAddr(text)
	return a, err == nil
}

// last is when the last claim was made.
func (l *claimLog) last() (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if c := line[len(line)-1]; c.seen.After(at) {
			at = c.seen
		}
	}
	return at
}

// violations are those that were not told before.
func (l *claimLog) violations() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.broken
	l.broken = nil
	return told
}

// ended is when a lease of a node has last ended, for everybody to see.
func (l *claimLog) ended(node string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[node]
}
