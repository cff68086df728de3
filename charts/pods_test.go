package charts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Two replicas, behind one lease, that give way one at a time.
func TestReplicas(t *testing.T) {
	d := as[appsv1.Deployment](t, object(t, "Deployment tasuki-controller"))
	if *d.Spec.Replicas != 2 || !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--leader-elect=true") {
		t.Errorf("%d replicas with %v: want 2 that elect a leader", *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Args)
	}
	pdb := as[policyv1.PodDisruptionBudget](t, object(t, "PodDisruptionBudget tasuki-controller"))
	if pdb.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget lets %s be away, want 1", pdb.Spec.MaxUnavailable)
	}
	service := as[corev1.Service](t, object(t, "Service tasuki-controller"))
	selectors := map[string]*metav1.LabelSelector{"Deployment": d.Spec.Selector, "PodDisruptionBudget": pdb.Spec.Selector, "Service": {MatchLabels: service.Spec.Selector}}
	var spread []string
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		spread = append(spread, c.TopologyKey)
		selectors["spread by "+c.TopologyKey] = c.LabelSelector
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("a replica that cannot be spread by %s does not run", c.TopologyKey)
		}
	}
	if diff := cmp.Diff([]string{corev1.LabelHostname, corev1.LabelTopologyZone}, spread); diff != "" {
		t.Errorf("spread (-want +got):\n%s", diff)
	}
	for name, selector := range selectors {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if s.Empty() || !s.Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%s selects %s, which is not the controller's pods", name, s)
		}
	}
}

// The controller's pod passes the restricted Pod Security Standard, can write nothing but to
// the API server, and is probed on ports that it serves.
func TestControllerPod(t *testing.T) {
	spec := as[appsv1.Deployment](t, object(t, "Deployment tasuki-controller")).Spec.Template.Spec
	if s := spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v", s)
	}
	if spec.HostNetwork || spec.HostPID || spec.HostIPC || len(spec.Volumes) > 0 {
		t.Error("the pod shares something with its host")
	}
	c := spec.Containers[0]
	restricted := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(restricted, c.SecurityContext); diff != "" || len(spec.Containers) != 1 {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	probes := map[string]string{}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		port := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.String() })
		if port < 0 || c.Ports[port].ContainerPort != 8081 || !slices.Contains(c.Args, "--health-probe-bind-address=:8081") {
			t.Errorf("the %s probe asks port %s, which is not served", name, probe.HTTPGet.Port.String())
		}
		probes[name] = probe.HTTPGet.Path
	}
	if diff := cmp.Diff(map[string]string{"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}, probes); diff != "" {
		t.Errorf("probes (-want +got):\n%s", diff)
	}
	if startup := c.StartupProbe; startup.PeriodSeconds*startup.FailureThreshold <= 30 {
		t.Error("the startup probe gives up before the controller's preflight does")
	}
	if grace := *spec.TerminationGracePeriodSeconds; grace <= 30 {
		t.Errorf("a grace period of %d s ends before the controller has finished", grace)
	}
}

// The agent's pod has its host's network and state, and no right beyond that.
func TestAgentPod(t *testing.T) {
	got, err := render(t, "agent: {enabled: true, config: x}")
	if err != nil {
		t.Fatal(err)
	}
	spec := as[appsv1.DaemonSet](t, find(got, agent)).Spec.Template.Spec
	if !spec.HostNetwork || spec.HostPID || *spec.AutomountServiceAccountToken {
		t.Errorf("hostNetwork %t, hostPID %t, token %t: want the network alone", spec.HostNetwork, spec.HostPID, *spec.AutomountServiceAccountToken)
	}
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, spec.Containers[0].SecurityContext); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	for _, o := range got {
		if strings.HasSuffix(o.GetKind(), "Binding") && strings.Contains(string(asJSON(t, o)), "tasuki-agent") {
			t.Errorf("%s %s gives the agent rights", o.GetKind(), o.GetName())
		}
	}
}

// The programs take the command lines that the chart gives them. The agent also judges the
// configuration in its values, which here is an example of the documents.
func TestProgramsTakeTheirArguments(t *testing.T) {
	config, err := os.ReadFile("../examples/agent/aws.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := render(t, "agent: {enabled: true, config: "+string(asJSON(t, string(config)))+"}")
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/tasuki-controller", "./cmd/tasuki-agent")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data := as[corev1.ConfigMap](t, find(got, "ConfigMap tasuki-agent")).Data
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	try := func(c corev1.Container, more ...string) (int, string) {
		args := append(slices.Clone(c.Args), more...)
		for i := range args {
			args[i] = strings.NewReplacer("$(NODE_NAME)", "router-a", "$(HOST_IP)", "10.0.0.1").Replace(args[i])
		}
		out, err := exec.Command(filepath.Join(bin, c.Command[0]), args...).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if exit == nil {
			return 0, string(out)
		}
		return exit.ExitCode(), string(out)
	}
	c := as[appsv1.Deployment](t, find(got, controller)).Spec.Template.Spec.Containers[0]
	if code, out := try(c, "--kubeconfig", filepath.Join(dir, "none")); code != 1 || !strings.Contains(out, "find the cluster") {
		t.Errorf("the controller ended with %d, want 1 for a cluster that is not there:\n%s", code, out)
	}
	c = as[appsv1.DaemonSet](t, find(got, agent)).Spec.Template.Spec.Containers[0]
	if code, out := try(c, "--config", dir, "--check"); code != 0 {
		t.Errorf("the agent ended with %d:\n%s", code, out)
	}
}
