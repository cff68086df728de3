package lab

import "strings"

// program is one binary of the lab and the pinned module it is built from.
type program struct {
	name   string
	module string // folder under lab/tools
	pkg    string
	flags  string  // -ldflags
	share  float64 // of a first build's time, measured on two cores
}

const (
	stripped = "-s -w"
	// kubernetesRelease must match the version required by tools/kubernetes/go.mod: the programs themselves do not know
	// it when they are built as modules, and the API server's /version would say v0.0.0.
	kubernetesRelease = "v1.36.3"
)

// programs in the order in which they are built.
var programs = []program{
	{Etcd, "kubernetes", "./etcd", kubernetesFlags(), 0.15},
	{APIServer, "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesFlags(), 0.45},
	{ControllerManager, "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesFlags(), 0.12},
	{Scheduler, "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", kubernetesFlags(), 0.03},
	{KWOK, "kwok", "sigs.k8s.io/kwok/cmd/kwok", stripped, 0.10},
	{Karpenter, "karpenter", "sigs.k8s.io/karpenter/kwok", stripped, 0.15},
}

func kubernetesFlags() string {
	version := strings.SplitN(strings.TrimPrefix(kubernetesRelease, "v"), ".", 3)
	const at = " -X k8s.io/component-base/version."
	return stripped + at + "gitVersion=" + kubernetesRelease + at + "gitMajor=" + version[0] + at + "gitMinor=" + version[1]
}

// buildArgs are the arguments of the go command that builds p into the file out.
func (p program) buildArgs(out string) []string {
	return []string{"build", "-trimpath", "-ldflags", p.flags, "-o", out, p.pkg}
}

// asset is a set of files that a lab needs at start and that lie in a pinned module.
type asset struct {
	tools  string // folder under lab/tools whose go.mod pins the module
	module string
	from   string // folder in the module; its *.yaml files are taken
	to     string // folder in the build
}

const (
	crdDir   = "crds"
	stageDir = "stages"
)

var assets = []asset{
	{"karpenter", "sigs.k8s.io/karpenter", "pkg/apis/crds", crdDir},
	{"karpenter", "sigs.k8s.io/karpenter", "kwok/apis/crds", crdDir},
	{"kwok", "sigs.k8s.io/kwok", "kustomize/stage/node/fast", stageDir},
	{"kwok", "sigs.k8s.io/kwok", "kustomize/stage/node/heartbeat-with-lease", stageDir},
	{"kwok", "sigs.k8s.io/kwok", "kustomize/stage/pod/fast", stageDir},
}
