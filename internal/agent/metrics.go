package agent

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// metrics count what was done.
type metrics struct {
	actions  *prometheus.CounterVec   // by verb and outcome
	fenced   *prometheus.CounterVec   // by where and why
	drift    *prometheus.CounterVec   // by kind
	duration *prometheus.HistogramVec // seconds, by verb
	success  prometheus.Gauge
	failing  prometheus.Gauge
	alive    prometheus.Gauge
	refused  prometheus.Gauge
}

const namespace = "tasuki_capture"

func newMetrics() *metrics {
	m := &metrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "action_total", Help: "Attempts that ended, by verb and by the executor's outcome (unasked when the provider was not asked).",
		}, []string{"verb", "outcome"}),
		fenced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "fenced_total", Help: "Actions that the gate refused, by where it was asked (import, sweep, execution) and why.",
		}, []string{"where", "why"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "drift_total", Help: "Times the provider did not show what was done, and a repair was planned, by what it showed.",
		}, []string{"kind"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "action_duration_seconds", Help: "From the begin of an attempt to its end, the provider's confirmation included.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30},
		}, []string{"verb"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "last_success_timestamp", Help: "When an action last succeeded, in Unix seconds; 0 since the start of the agent.",
		}),
		alive: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "lease_held", Help: "1 while this node's lease has certainly not ended.",
		}),
		failing: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "pass_failing", Help: "1 while the last pass could not be completed.",
		}),
		refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "config_refused", Help: "1 while the configuration on disk is refused and an older one is in force.",
		}),
	}
	for kind := range drifts {
		m.drift.WithLabelValues(string(kind)) // a series that begins with its first drift shows no increase
	}
	return m
}

func (m *metrics) register(r prometheus.Registerer, a *Agent) {
	r.MustRegister(m.actions, m.fenced, m.drift, m.duration, m.success, m.failing, m.alive, m.refused, levels{a})
}

// levels are the metrics that are read off the agent's view when somebody asks.
type levels struct{ *Agent }

var (
	epochDesc = prometheus.NewDesc(namespace+"_epoch", "captureEpoch of an address, as this node knows it.", []string{"pool", "address", "domain"}, nil)
	holdsDesc = prometheus.NewDesc(namespace+"_holder", "1 while this node is the holder of an address.", []string{"pool", "address", "domain"}, nil)
	vrrpDesc  = prometheus.NewDesc(namespace+"_vrrp_master", "1 while this node is proven to be MASTER of a VRRP instance.", []string{"instance"}, nil)
	paceDesc  = prometheus.NewDesc(namespace+"_pace", "How many calls per second may begin, of changes or of reads, while a provider throttles a profile.", []string{"provider_ref", "of"}, nil)
	openDesc  = prometheus.NewDesc(namespace+"_pending_actions", "Actions that are not over, by state.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (l levels) Describe(to chan<- *prometheus.Desc) {
	to <- epochDesc
	to <- holdsDesc
	to <- vrrpDesc
	to <- paceDesc
	to <- openDesc
}

// Collect implements prometheus.Collector.
func (l levels) Collect(to chan<- prometheus.Metric) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	open := map[capture.State]int{capture.Pending: 0, capture.Approved: 0, capture.Running: 0, capture.Failed: 0}
	for k := range l.served() {
		c, holds := l.view.Current(k), 0.0
		if c.Epoch > 0 && c.Holder == capture.Holder(l.node) {
			holds = 1
		}
		labels := []string{k.Pool, k.Address.String(), string(k.Domain)}
		to <- prometheus.MustNewConstMetric(epochDesc, prometheus.GaugeValue, float64(c.Epoch), labels...)
		to <- prometheus.MustNewConstMetric(holdsDesc, prometheus.GaugeValue, holds, labels...)
	}
	for i, proven := range l.instances() {
		to <- prometheus.MustNewConstMetric(vrrpDesc, prometheus.GaugeValue, map[bool]float64{true: 1}[proven], i)
	}
	for lane, p := range l.paces {
		if p.rate > 0 {
			to <- prometheus.MustNewConstMetric(paceDesc, prometheus.GaugeValue, p.rateAt(l.now()), lane.profile, lane.what())
		}
	}
	for _, row := range l.view.Open() {
		open[row.State]++
	}
	for state, n := range open {
		to <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(n), string(state))
	}
}

// served are the keys of this node: each address of its pools, in its domain.
func (a *Agent) served() iter.Seq[capture.Key] {
	return a.servedBy(func(*capture.Member) bool { return true })
}

// servedBy are those of some of its memberships.
func (a *Agent) servedBy(by func(*capture.Member) bool) iter.Seq[capture.Key] {
	return func(yield func(capture.Key) bool) {
		for i := range a.config.Pools {
			p := &a.config.Pools[i]
			for j := range p.Members {
				if p.Members[j].Node != a.node || !by(&p.Members[j]) {
					continue
				}
				k := capture.Key{Pool: p.Name, Domain: p.Members[j].Domain()}
				for _, addr := range p.Addresses {
					if k.Address = addr.Addr; !yield(k) {
						return
					}
				}
			}
		}
	}
}
