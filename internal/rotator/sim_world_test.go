package rotator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// simSpec is one pool and the policy that rules it, in numbers that the laws can reckon with.
type simSpec struct {
	name          string
	nodes, pods   int
	every, lasts  time.Duration // a window opens at every multiple of this; 0 never closes
	age           time.Duration // 0 is auto, with two chances
	expire, grace time.Duration
	ready         time.Duration // readyTimeout
	cooldown      time.Duration
	failurePause  time.Duration // 0 is the default
	backoff       time.Duration
	fallback      bool
}

var simSpecs = []simSpec{
	{name: "blue", nodes: 2, pods: 5, age: 40 * time.Minute, expire: 4 * time.Hour, grace: 10 * time.Minute,
		ready: 5 * time.Minute, failurePause: 5 * time.Minute, backoff: 10 * time.Minute},
	{name: "green", nodes: 2, pods: 4, every: time.Hour, lasts: 25 * time.Minute, expire: 4 * time.Hour, grace: 20 * time.Minute,
		ready: 3 * time.Minute, cooldown: 7 * time.Minute, backoff: 6 * time.Minute, fallback: true},
	{name: "red", nodes: 3, pods: 6, every: 30 * time.Minute, lasts: 18 * time.Minute, age: time.Hour, expire: 2 * time.Hour, grace: 15 * time.Minute,
		ready: 4 * time.Minute, cooldown: time.Minute, failurePause: 3 * time.Minute, backoff: 5 * time.Minute, fallback: true},
}

var simPoolNames = []string{"blue", "green", "red"}

func (x simSpec) policy() *v1alpha1.RotationPolicy {
	p := policy(x.name, map[string]string{"pool": x.name})
	p.UID = ""
	p.Spec.AgeThreshold = v1alpha1.AgeThresholdAuto
	if x.age > 0 {
		p.Spec.AgeThreshold = x.age.String()
	}
	if x.every > 0 {
		day := p.Spec.MaintenanceWindows[0]
		p.Spec.MaintenanceWindows = nil
		for at := time.Duration(0); at < 24*time.Hour; at += x.every {
			w, end := day, at+x.lasts
			w.Start = fmt.Sprintf("%02d:%02d", at/time.Hour, at%time.Hour/time.Minute)
			w.End = fmt.Sprintf("%02d:%02d", end/time.Hour, end%time.Hour/time.Minute)
			p.Spec.MaintenanceWindows = append(p.Spec.MaintenanceWindows, w)
		}
	}
	p.Spec.Surge.ReadyTimeout.Duration = x.ready
	p.Spec.Surge.CooldownAfter.Duration = x.cooldown
	p.Spec.Surge.RetryBackoff.Duration = x.backoff
	if x.failurePause > 0 {
		p.Spec.Surge.FailurePause = &metav1.Duration{Duration: x.failurePause}
	}
	p.Spec.Surge.ForcefulFallback.Enabled = x.fallback
	return p
}

// editPolicy turns a knob. What a policy says follows from its name and generation.
func editPolicy(o client.Object) {
	p := o.(*v1alpha1.RotationPolicy)
	p.Generation++
	p.Spec.Surge.CooldownAfter.Duration = time.Duration(p.Generation*7%15) * time.Minute
	fresh := simSpecs[slices.Index(simPoolNames, strings.TrimPrefix(p.Name, "rival-"))].policy()
	p.Spec.AgeThreshold, p.Spec.Surge.ReadyTimeout = fresh.Spec.AgeThreshold, fresh.Spec.Surge.ReadyTimeout
	switch p.Generation % 4 {
	case 2:
		p.Spec.AgeThreshold = "soon"
	case 3:
		p.Spec.Surge.ReadyTimeout.Duration = simEndless
	}
}

// simEndless is a readyTimeout for which no node lives long enough.
const simEndless = 100 * time.Hour

// spoiled is a policy that no rotation can start under.
func spoiled(p *v1alpha1.RotationPolicy) bool {
	return p.Spec.AgeThreshold == "soon" || p.Spec.Surge.ReadyTimeout.Duration == simEndless
}

// sim is a cluster in which nothing happens unless the schedule says so.
type sim struct {
	api          *simServer
	laws         *simLaws
	leader       *incarnation
	old          []*incarnation // no longer leaders, and with calls under way
	incarnations int
	running      *simPass // the one pass that runs, nil while the schedule does
	policies     *policies

	launches, replicas int
	cordoned           map[string]time.Time
	weather            bool      // faults and people; fair when false
	outage             bool      // the API server answers nobody
	fair               time.Time // since when nothing is in the way
	mustGo             []string  // claims that have to be rotated before the end
	seen               map[string]int
	lines              []move
}

// saw counts a situation.
func (s *sim) saw(what string) { s.seen[what]++ }

// newSim builds the world with this number: the same pools, nodes of other ages.
func newSim(world uint64, seen map[string]int) *sim {
	r := rand.New(rand.NewPCG(world, 1))
	s := &sim{policies: &policies{known: map[types.UID]knownPolicy{}}, cordoned: map[string]time.Time{}, seen: seen, weather: true}
	start := now.Truncate(24 * time.Hour).Add(time.Duration(r.IntN(24*60)) * time.Minute)
	s.api = &simServer{now: start}
	s.laws = newLaws(s)
	s.api.observe = s.laws.observe
	for _, x := range simSpecs {
		_ = s.api.create("person", simPolicies, x.policy())
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: x.name, Labels: map[string]string{"pool": x.name}}}
		p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration(x.expire.String())
		p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: x.grace}
		_ = s.api.create("person", simPools, p)
		for range x.nodes {
			s.api.now = start.Add(-time.Duration(r.Int64N(int64(x.expire * 3 / 4))))
			s.launch(p, "")
			s.karpenterDoes("register", fmt.Sprintf("%s-%d", x.name, s.launches), "")
			s.karpenterDoes("name", fmt.Sprintf("%s-%d", x.name, s.launches), "")
			s.karpenterDoes("initialize", fmt.Sprintf("%s-%d", x.name, s.launches), "")
			s.clusterDoes("ready", simNodeName(fmt.Sprintf("%s-%d", x.name, s.launches)), "")
		}
		s.api.now = start
		for i := range x.pods {
			w := s.workload(x.name)
			s.clusterDoes("bind", w.Name, simNodeName(fmt.Sprintf("%s-%d", x.name, s.launches-i%x.nodes)))
			s.clusterDoes("run", w.Name, "")
		}
		s.karpenterDoes("count", x.name, "")
	}
	s.lead(0, "")
	return s
}

// simMeasured holds every policy of every world by name and generation. Measuring a schedule
// is the one slow thing in a pass, and here the same on every day.
var simMeasured = map[string]*rotation.Policy{}

// measured spares the next pass the measure of a policy.
func (s *sim) measured(p *v1alpha1.RotationPolicy) {
	key := fmt.Sprintf("%s@%d", p.Name, p.Generation)
	if simMeasured[key] == nil {
		simMeasured[key] = PolicyFrom(p, now.Truncate(24*time.Hour))
	}
	s.policies.known[p.UID] = knownPolicy{generation: p.Generation, day: s.running.decided.Truncate(24 * time.Hour), policy: simMeasured[key]}
}
