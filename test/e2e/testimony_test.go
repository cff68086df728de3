package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab"
)

// disruptedTaint is what Karpenter puts on a node that it is about to replace or remove.
const disruptedTaint = "karpenter.sh/disrupted"

// spell is the time from an anchor to its release, as the NodePool told it. What has not
// come is zero.
type spell struct {
	claim        string
	from, to     int64 // revisions
	began, ended time.Time
}

// spells are the rotations that the pool ever had, the oldest first.
func (p *pool) spells() []spell {
	var all []spell
	last := ""
	walk(world.history, p.isNodePool, func(v version, np *karpv1.NodePool) {
		now := np.Annotations[activeRotation]
		if v.gone {
			now = ""
		}
		if now == last {
			return
		}
		if last != "" {
			s := &all[len(all)-1]
			s.to, s.ended = revision(p.t, np), v.at
		}
		if now != "" {
			all = append(all, spell{claim: now, from: revision(p.t, np), began: v.at})
		}
		last = now
	})
	return all
}

// awaitSpells waits until the pool has had this many rotations, all of them over.
func (p *pool) awaitSpells(n int) []spell {
	p.t.Helper()
	var all []spell
	p.await(fmt.Sprintf("%d rotations of NodePool %s", n, p.name), func() string {
		if all = p.spells(); len(all) < n || all[n-1].to == 0 {
			return fmt.Sprintf("there were %d: %v", len(all), all)
		}
		return ""
	})
	return all[:n]
}

// firstOf is the revision at which a NodeClaim, or its Node, was first as told; 0 if never.
func firstOf[T client.Object](t *testing.T, name string, told func(v version, o T) bool) (at int64) {
	t.Helper()
	walk(world.history, func(o T) bool { return o.GetName() == name }, func(v version, o T) {
		if at == 0 && told(v, o) {
			at = revision(t, o)
		}
	})
	return at
}

// goneAt is the revision at which a NodeClaim was gone, 0 while it is there.
func (p *pool) goneAt(claim string) int64 {
	return firstOf(p.t, claim, func(v version, _ *karpv1.NodeClaim) bool { return v.gone })
}

// deletedBy is the user who was the first to ask for the deletion of a NodeClaim. Karpenter
// follows with its own, when it has drained the node.
func (p *pool) deletedBy(claim string) string {
	p.t.Helper()
	all, err := lab.AuditWrites(world.lab.Audit(), "")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range all {
		if e.Verb == "delete" && e.Resource == "nodeclaims" && e.Name == claim {
			return e.User
		}
	}
	return ""
}

// awaitReason waits until the log says why no rotation of the pool starts, and returns the
// detail of the first such line.
func (p *pool) awaitReason(reason string) (detail string) {
	p.t.Helper()
	p.await("the reason "+reason+" in the log", func() string {
		logs, err := filepath.Glob(filepath.Join(world.dir, "tasuki-controller-*.log"))
		if err != nil {
			p.t.Fatal(err)
		}
		last := "there is none"
		for _, path := range logs {
			content, err := os.ReadFile(path)
			if err != nil {
				p.t.Fatal(err)
			}
			for text := range strings.Lines(string(content)) {
				var l struct{ Msg, NodePool, Reason, Detail string }
				if json.Unmarshal([]byte(text), &l) != nil || l.NodePool != p.name || l.Msg != "no rotation candidate" {
					continue
				}
				if last, detail = "the last is "+l.Reason, l.Detail; l.Reason == reason {
					return ""
				}
			}
		}
		return last
	})
	return detail
}

// metrics are the samples about the pool that the shared controller serves. A sample is
// named without the common prefix and the label of the pool: completed_total{outcome="success"}.
func (p *pool) metrics() map[string]float64 {
	p.t.Helper()
	resp, err := http.Get("http://" + world.metrics + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	samples := map[string]float64{}
	label := fmt.Sprintf("nodepool=%q", p.name)
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		name, value, ok := strings.Cut(in.Text(), "} ")
		name, labels, _ := strings.Cut(name, "{")
		name, ours := strings.CutPrefix(name, "noderotation_")
		all := strings.Split(labels, ",")
		if !ok || !ours || !slices.Contains(all, label) {
			continue
		}
		if others := slices.DeleteFunc(all, func(l string) bool { return l == label }); len(others) > 0 {
			name += "{" + strings.Join(others, ",") + "}"
		}
		if samples[name], err = strconv.ParseFloat(value, 64); err != nil {
			p.t.Errorf("metric %s: %v", in.Text(), err)
		}
	}
	return samples
}

// measured waits until the samples about the pool have these values, among others.
func (p *pool) measured(want map[string]float64) {
	p.t.Helper()
	p.awaitWithin(15*time.Second, "metrics of NodePool "+p.name, func() string {
		got := p.metrics()
		maps.DeleteFunc(got, func(name string, _ float64) bool { _, asked := want[name]; return !asked })
		return cmp.Diff(want, got)
	})
}

// freeAddress is one on which nobody listens at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
