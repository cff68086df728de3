package lab

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
)

// instanceTypesJSON is the lab's market: c-2x, c-4x and c-8x (2, 4 and 8 CPUs with 4, 8 and 16 GiB) and g-4x with one
// GPU, each in test-zone-a and test-zone-b, on demand and spot.
//
//go:embed instance_types.json
var instanceTypesJSON []byte

func karpenter(d layout, p ports, settings map[string]string) component {
	env := map[string]string{
		"KUBECONFIG":               d.kubeconfig(Karpenter),
		"KUBERNETES_MIN_VERSION":   "1.19.0-0",
		"KARPENTER_SERVICE":        "karpenter",
		"SYSTEM_NAMESPACE":         "kube-system",
		"MEMORY_LIMIT":             "-1",
		"CPU_REQUESTS":             "1000",
		"METRICS_PORT":             fmt.Sprint(p.KarpenterMetrics),
		"HEALTH_PROBE_PORT":        fmt.Sprint(p.KarpenterHealth),
		"INSTANCE_TYPES_FILE_PATH": d.config(instanceTypes),
		"LOG_LEVEL":                "info",
		// One replica: waiting for the lease of a killed one would only make tests slow.
		"DISABLE_LEADER_ELECTION": "true",
		"BATCH_IDLE_DURATION":     "1s",
		"BATCH_MAX_DURATION":      "10s",
	}
	maps.Copy(env, settings)
	c := component{
		name: Karpenter,
		addr: loopback(p.KarpenterHealth),
		// It may be ready before it finds that another process has its metrics port, and then dies.
		health: []string{
			"http://" + loopback(p.KarpenterHealth) + "/readyz",
			"http://" + loopback(p.KarpenterMetrics) + "/metrics",
		},
	}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		c.env = append(c.env, key+"="+env[key])
	}
	return c
}
