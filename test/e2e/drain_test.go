package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// Drains that a PodDisruptionBudget holds: until Karpenter forces one, or for longer than
// any drain should take.
func TestDrainsThatABudgetHolds(t *testing.T) {
	needLab(t)
	address := freeAddress(t)
	c := own(t, "", "--metrics-bind-address", address)
	t.Run("r24 forced at the grace period", func(t *testing.T) { t.Parallel(); testForcedDrain(t, c, address) })
	t.Run("r25 stuck without one", func(t *testing.T) { t.Parallel(); testStuckDrain(t, c, address) })
}

func terminating(d *metav1.Duration) func(*karpv1.NodePool) {
	return func(np *karpv1.NodePool) { np.Spec.Template.Spec.TerminationGracePeriod = d }
}

// r24: a budget that asks for the only replica. Karpenter forces the drain when the
// terminationGracePeriod is over: a success that took as long as it took.
func testForcedDrain(t *testing.T, c *trial.Controller, address string) {
	const grace = time.Minute
	p := newPool(t, "r24", terminating(&metav1.Duration{Duration: grace}))
	web := p.deploy("web", 1, cpu("1"))
	p.keep(web)
	p.awaitSettled(1, 1)
	before := p.claimNames()
	series := func(name, labels string) string {
		return fmt.Sprintf("noderotation_%s{nodepool=%q%s}", name, p.name, labels)
	}

	p.govern()
	p.await("a finished rotation", func() string {
		if stuck := metric(t, address, series("drain_stuck", "")); stuck > 0 {
			t.Fatalf("drain_stuck is %v in a drain that is within its bound", stuck)
		}
		if a := p.nodePool().Annotations; a[lastRotationAt] == "" {
			return fmt.Sprintf("annotations %v", ourMarks(a))
		}
		return ""
	})
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
	var deleted, gone time.Time
	walk(world.history, func(n *karpv1.NodeClaim) bool { return n.Name == before[0] }, func(v version, n *karpv1.NodeClaim) {
		if deleted.IsZero() && n.DeletionTimestamp != nil {
			deleted = v.at
		}
		if v.gone {
			gone = v.at
		}
	})
	drain := gone.Sub(deleted)
	if drain < grace-5*time.Second {
		t.Errorf("the drain took %s: it was not held until %s", drain, grace)
	}
	about := func(what string, got time.Duration) {
		t.Helper()
		if got < drain-3*time.Second || got > drain+10*time.Second {
			t.Errorf("%s says the drain took %s, it took %s", what, got, drain)
		}
	}
	logged, err := time.ParseDuration(fmt.Sprint(p.once(c, "rotation complete")["drain"]))
	if err != nil {
		t.Error(err)
	}
	about("the log", logged)
	about("the histogram", time.Duration(metric(t, address, series("duration_seconds_sum", `,phase="drain"`))*float64(time.Second)))
	if n := metric(t, address, series("duration_seconds_count", `,phase="drain"`)); n != 1 {
		t.Errorf("the histogram counts %v drains, want 1", n)
	}
	if n := metric(t, address, series("completed_total", `,outcome="success"`)); n != 1 {
		t.Errorf("completed_total counts %v successes, want 1", n)
	}
	note := p.oneEvent("RotationCompleted")
	if total, err := time.ParseDuration(note[strings.LastIndex(note, " ")+1:]); err != nil || total < drain-3*time.Second {
		t.Errorf("RotationCompleted does not tell of a drain of %s: %s", drain, note)
	}
}

// r25: as r24, without a grace period: the drain never ends by itself. After 1h and 2m it
// is called stuck, and on what; no other node of the pool is touched meanwhile. The lab has
// no hour to wait, so the deletion is made to have been an hour ago.
func testStuckDrain(t *testing.T, c *trial.Controller, address string) {
	p := newPool(t, "r25", terminating(nil))
	web := p.deploy("held", 1, cpu("3"))
	p.keep(web)
	p.awaitSettled(1, 1)
	blocker := p.podsOn(p.nodes()[0].Name)[0]
	p.deploy("other", 1, cpu("3"))
	p.awaitSettled(2, 2)
	before := p.claimNames()
	stuck := func() float64 {
		return metric(t, address, fmt.Sprintf("noderotation_drain_stuck{nodepool=%q}", p.name))
	}

	p.govern()
	p.await("the drain", func() string {
		if p.claim(before[0]).DeletionTimestamp == nil {
			return "the NodeClaim is not being deleted"
		}
		return ""
	})
	time.Sleep(5 * time.Second)
	if n := stuck(); n != 0 {
		t.Errorf("drain_stuck is %v at the beginning of a drain", n)
	}
	p.deletedEarlier(before[0], 63*time.Minute)
	p.await("the verdict on the drain", func() string {
		if n := stuck(); n != 1 {
			return fmt.Sprintf("drain_stuck is %v", n)
		}
		return ""
	})
	if detail := fmt.Sprint(p.once(c, "drain is stuck")["detail"]); !strings.Contains(detail, workloads+"/"+blocker) {
		t.Errorf("the log does not name pod %s/%s: %s", workloads, blocker, detail)
	}
	time.Sleep(10 * time.Second)
	if anchors := p.onPool(activeRotation); !slices.Equal(anchors, before[:1]) {
		t.Errorf("anchors %v, want %s alone", anchors, before[0])
	}
	if a := p.claim(before[1]); len(ourMarks(a.Annotations)) > 0 || a.DeletionTimestamp != nil {
		t.Errorf("NodeClaim %s was touched: deleting %v %v", a.Name, a.DeletionTimestamp, ourMarks(a.Annotations))
	}

	p.lift(web.Name)
	p.awaitRotated()
	p.awaitSettled(2, 2)
	p.rotated(before[0], before, 1)
	p.oneEvent("RotationCompleted")
	if n := metric(t, address, fmt.Sprintf("noderotation_completed_total{nodepool=%q,outcome=\"success\"}", p.name)); n != 1 {
		t.Errorf("completed_total counts %v successes, want 1", n)
	}
	p.await("the end of the verdict", func() string {
		if n := stuck(); n != 0 {
			return fmt.Sprintf("drain_stuck is %v", n)
		}
		return ""
	})
	p.once(c, "rotation complete")
}

// podsOn names the workload's pods that stay on a node.
func (p *pool) podsOn(node string) []string {
	p.t.Helper()
	var l corev1.PodList
	p.list(&l, client.InNamespace(workloads), client.MatchingLabels{poolLabel: p.name})
	var names []string
	for i := range l.Items {
		if l.Items[i].Spec.NodeName == node && l.Items[i].DeletionTimestamp == nil {
			names = append(names, l.Items[i].Name)
		}
	}
	return names
}

// keep gives a deployment of one replica a budget that never allows to evict it.
func (p *pool) keep(d *appsv1.Deployment) {
	p.t.Helper()
	one := intstr.FromInt32(1)
	p.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: d.Name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: d.Spec.Selector},
	})
}

// lift removes the budget of a deployment.
func (p *pool) lift(deployment string) {
	p.t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: deployment}}
	if err := world.client.Delete(world.ctx, budget); err != nil {
		p.t.Fatal(err)
	}
}

// deletedEarlier dates the deletion of a NodeClaim back, where no API call can: in the lab's
// store.
func (p *pool) deletedEarlier(claim string, by time.Duration) {
	p.t.Helper()
	key := []byte("/registry/karpenter.sh/nodeclaims/" + claim)
	p.await("the new date of the deletion of NodeClaim "+claim, func() string {
		var got struct {
			KVs []struct {
				Value    []byte
				Revision string `json:"mod_revision"`
			}
		}
		p.etcd("range", map[string]any{"key": key}, &got)
		if len(got.KVs) != 1 {
			p.t.Fatalf("the lab's store has %d values of %s", len(got.KVs), key)
		}
		var object map[string]any
		if err := json.Unmarshal(got.KVs[0].Value, &object); err != nil {
			p.t.Fatal(err)
		}
		meta := object["metadata"].(map[string]any)
		at, err := time.Parse(time.RFC3339, fmt.Sprint(meta["deletionTimestamp"]))
		if err != nil {
			p.t.Fatal(err)
		}
		meta["deletionTimestamp"] = at.Add(-by).Format(time.RFC3339)
		value, err := json.Marshal(object)
		if err != nil {
			p.t.Fatal(err)
		}
		var done struct{ Succeeded bool }
		p.etcd("txn", map[string]any{
			"compare": []any{map[string]any{"key": key, "target": "MOD", "mod_revision": got.KVs[0].Revision}},
			"success": []any{map[string]any{"request_put": map[string]any{"key": key, "value": value}}},
		}, &done)
		if !done.Succeeded {
			return "it has changed since it was read"
		}
		return ""
	})
}

// etcd calls the JSON gateway of the lab's store with the API server's certificate.
func (p *pool) etcd(call string, request, response any) {
	p.t.Helper()
	pki := func(file string) string { return filepath.Join(world.lab.Dir(), "pki", file) }
	own, err := tls.LoadX509KeyPair(pki("etcd-client.crt"), pki("etcd-client.key"))
	if err != nil {
		p.t.Fatal(err)
	}
	ca, err := os.ReadFile(pki("ca.crt"))
	if err != nil {
		p.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}}
	defer transport.CloseIdleConnections()
	var address string
	for _, s := range world.lab.Status(context.Background()) {
		if s.Name == lab.Etcd {
			address = s.Address
		}
	}
	body, err := json.Marshal(request)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Post("https://"+address+"/v3/kv/"+call, "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("etcd: %s: %s %v", call, answer, err)
	}
	if err := json.Unmarshal(answer, response); err != nil {
		p.t.Fatal(err)
	}
}
