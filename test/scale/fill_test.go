package scale

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// size is what a cluster holds. Its nodes are spread over its pools, its pods over its nodes.
type size struct{ pools, nodes, pods int }

func (s size) String() string {
	return fmt.Sprintf("pools=%d/nodes=%d/pods=%d", s.pools, s.nodes, s.pods)
}

func (s size) pool(node int) string { return fmt.Sprintf("pool-%d", node%s.pools) }

// fill creates the objects of a cluster as Karpenter and its users would have.
func fill(ctx context.Context, c client.Client, s size) error {
	err := each(s.pools, func(i int) error { return c.Create(ctx, nodePool(s.pool(i))) })
	if err != nil {
		return err
	}
	err = each(s.nodes, func(i int) error {
		claim := nodeClaim(i, s.pool(i))
		status := claim.Status.DeepCopy()
		if err := c.Create(ctx, claim); err != nil {
			return err
		}
		claim.Status = *status
		if err := c.Status().Update(ctx, claim); err != nil {
			return err
		}
		node := nodeOf(claim)
		ready := node.Status.DeepCopy()
		if err := c.Create(ctx, node); err != nil {
			return err
		}
		node.Status = *ready
		return c.Status().Update(ctx, node)
	})
	if err != nil {
		return err
	}
	return each(s.pods, func(i int) error { return c.Create(ctx, pod(i, nodeName(i%s.nodes))) })
}

// each calls what for 0 to n-1, several at a time, and returns the first error.
func each(n int, what func(int) error) error {
	const atOnce = 32
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	for worker := range atOnce {
		wg.Go(func() {
			for i := worker; i < n; i += atOnce {
				if err := what(i); err != nil {
					once.Do(func() { failed = err })
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func nodePool(name string) *karpv1.NodePool {
	return &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "scale"}},
		Spec: karpv1.NodePoolSpec{
			Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
				ExpireAfter:            karpv1.MustParseNillableDuration("336h"),
				TerminationGracePeriod: &metav1.Duration{Duration: time.Hour},
				NodeClassRef:           nodeClass(),
				Requirements:           requirements(),
			}},
			Disruption: karpv1.Disruption{ConsolidateAfter: karpv1.MustParseNillableDuration(karpv1.Never)},
		},
	}
}

func nodeClass() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
}

func requirements() []karpv1.NodeSelectorRequirementWithMinValues {
	in := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	return []karpv1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelInstanceTypeStable, "c-32x-amd64-linux", "m-32x-amd64-linux", "r-32x-amd64-linux"),
		in(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand),
		in(corev1.LabelTopologyZone, "test-zone-a", "test-zone-b", "test-zone-c"),
		in(corev1.LabelArchStable, "amd64"),
	}
}

func nodeClaim(i int, pool string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:       fmt.Sprintf("%s-claim-%05d", pool, i),
			Labels:     nodeLabels(nodeName(i), pool),
			Finalizers: []string{"karpenter.sh/termination"},
		},
		Spec: karpv1.NodeClaimSpec{
			ExpireAfter: karpv1.MustParseNillableDuration("336h"), TerminationGracePeriod: &metav1.Duration{Duration: time.Hour},
			NodeClassRef: nodeClass(), Requirements: requirements(),
		},
	}
	claim.Status.NodeName = nodeName(i)
	claim.Status.ProviderID = "kwok://" + nodeName(i)
	claim.Status.Capacity, claim.Status.Allocatable = capacity(), capacity()
	for _, c := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(c)
	}
	return claim
}

func nodeLabels(name, pool string) map[string]string {
	return map[string]string{
		karpv1.NodePoolLabelKey: pool, karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand,
		corev1.LabelHostname: name, corev1.LabelTopologyZone: "test-zone-a", corev1.LabelArchStable: "amd64",
		corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: "m-32x-amd64-linux",
	}
}

func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"),
		corev1.ResourcePods: resource.MustParse("234"), corev1.ResourceEphemeralStorage: resource.MustParse("200Gi"),
	}
}

// nodeOf is the Node of a claim, with what a kubelet keeps in its status.
func nodeOf(claim *karpv1.NodeClaim) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Status.NodeName, Labels: claim.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID}},
		},
		Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
	}
	n.Status.Capacity, n.Status.Allocatable = capacity(), capacity()
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		status := corev1.ConditionFalse
		if t == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: t, Status: status, Reason: "KubeletHasSufficient", Message: "kubelet has sufficient resources available",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		})
	}
	for i := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example.com/team/application-%d@sha256:%064d", i, i)}, SizeBytes: 1 << 28,
		})
	}
	return n
}

// pod is one of about 4 KB, as the API server returns it.
func pod(i int, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("app-%d-%05d", i%100, i),
			Labels:      map[string]string{"app": fmt.Sprintf("app-%d", i%100), "pod-template-hash": "7d9f8c6b5d"},
			Annotations: map[string]string{"example.com/config-checksum": strings.Repeat("0123456789abcdef", 4)},
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/team/application:v1.2.3",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				}},
			}},
		},
	}
	for v := range 12 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{
			Name: fmt.Sprintf("APPLICATION_SETTING_%d", v), Value: strings.Repeat("value-", 8),
		})
	}
	return p
}
