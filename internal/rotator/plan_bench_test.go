package rotator

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/internal/manifest"
)

// BenchmarkPlan is all that tasuki plan -f does but start: 10,000 NodeClaims of all ages, as
// kubectl get -o yaml prints them, and 90 days of their future. Rotations take a minute.
func BenchmarkPlan(b *testing.B) {
	const nodes, life = 10_000, 14 * 24 * time.Hour
	now := time.Date(2026, 6, 10, 0, 0, 0, 0, time.UTC)
	for _, pools := range []int{1, 50} {
		text := clusterText(pools, nodes, life, now)
		b.Run(fmt.Sprintf("pools=%d/read", pools), func(b *testing.B) {
			for b.Loop() {
				objectsIn(b, text)
			}
		})
		for _, window := range []struct{ name, days, start, end string }{
			{"weekly", "Wed", "02:00", "06:00"},
			{"nightly", "Mon, Tue, Wed, Thu, Fri, Sat, Sun", "22:00", "04:00"},
			{"hours", "Mon, Tue, Wed, Thu, Fri, Sat, Sun", "02:00", "01:00"},
			{"always", "Mon, Tue, Wed, Thu, Fri, Sat, Sun", "00:00", "24:00"},
		} {
			policy := fmt.Sprintf(`---
apiVersion: noderotation.io/v1alpha1
kind: RotationPolicy
metadata: {name: all}
spec:
  nodePoolSelector: {}
  maintenanceWindows: [{timezone: Europe/Berlin, days: [%s], start: "%s", end: "%s"}]
  surge: {cooldownAfter: 0s, drainEstimate: 30s, provisioningEstimate: 30s}
`, window.days, window.start, window.end)
			b.Run(fmt.Sprintf("pools=%d/%s", pools, window.name), func(b *testing.B) {
				o, turns := objectsIn(b, text+policy), 0
				for b.Loop() {
					turns = 0
					plans := o.Plans(now, now.AddDate(0, 0, 90))
					for _, p := range plans {
						turns += len(p.Turns)
					}
					if err := json.NewEncoder(io.Discard).Encode(plans); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(turns), "turns")
			})
		}
	}
}

func objectsIn(t testing.TB, text string) Objects {
	t.Helper()
	r, err := manifest.NewReader(Kinds(deploy.CRD())...)
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.ReadFiles([]manifest.File{{Name: "cluster.yaml", Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := ObjectsOf(read)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func clusterText(pools, nodes int, life time.Duration, now time.Time) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n")
	for i := range pools {
		fmt.Fprintf(&b, `- apiVersion: karpenter.sh/v1
  kind: NodePool
  metadata: {name: blue-%d}
  spec:
    template:
      spec:
        expireAfter: %s
        terminationGracePeriod: 1h
        nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
        requirements: []
`, i, life)
	}
	for i := range nodes {
		fmt.Fprintf(&b, `- apiVersion: karpenter.sh/v1
  kind: NodeClaim
  metadata:
    annotations:
      karpenter.kwok.sh/kwoknodeclass-hash: "3750299925711213556"
      karpenter.sh/nodepool-hash: "4012513481623584108"
      karpenter.sh/nodepool-hash-version: v3
    creationTimestamp: %q
    finalizers:
    - karpenter.sh/termination
    labels:
      karpenter.sh/capacity-type: spot
      karpenter.sh/nodepool: blue-%d
      kubernetes.io/arch: amd64
      kubernetes.io/os: linux
      node.kubernetes.io/instance-type: c-4x-amd64-linux
      topology.kubernetes.io/zone: test-zone-b
    name: claim-%05d
    resourceVersion: "1000"
  spec:
    expireAfter: %s
    terminationGracePeriod: 1h
    nodeClassRef:
      group: karpenter.kwok.sh
      kind: KWOKNodeClass
      name: default
    requirements:
    - key: kubernetes.io/arch
      operator: In
      values:
      - amd64
    - key: node.kubernetes.io/instance-type
      operator: In
      values:
      - c-4x-amd64-linux
      - m-4x-amd64-linux
    resources:
      requests:
        cpu: 2650m
        memory: 2500Mi
  status:
    allocatable:
      cpu: 3900m
      memory: 7Gi
      pods: "32"
    capacity:
      cpu: "4"
      memory: 8Gi
      pods: "32"
    conditions:
    - lastTransitionTime: "2026-06-01T00:00:30Z"
      message: ""
      observedGeneration: 1
      reason: Ready
      status: "True"
      type: Ready
    nodeName: node-%05d
    providerID: kwok://node-%05d
`, now.Add(-time.Duration(i)*life/time.Duration(nodes)).Format(time.RFC3339), i%pools, i, life, i, i)
	}
	return b.String()
}
