package agent

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// announcer tells people what was done. It is given receipts, never plans.
type announcer struct {
	log *slog.Logger
	*metrics
	silent   bool // the lease is not renewed; of the goroutine that renews it
	contests bool // somebody takes what this node takes

	mu      sync.Mutex
	trouble []string // of the configuration on disk
}

// Where the gate has refused.
const (
	whereImport    = "import"
	whereSweep     = "sweep"
	whereExecution = "execution"
)

func newAnnouncer(log *slog.Logger, node string) *announcer {
	return &announcer{log: log.With("node", node), metrics: newMetrics()}
}

func (t *announcer) bumped(b capture.Bump) {
	t.log.Info("holder changed", "key", b.Key.String(), "from", b.From.Holder.String(), "to", b.To.Holder.String(), "epoch", b.To.Epoch, "why", b.Why)
}

// applied tells of the journal's part of a plan.
func (t *announcer) applied(r journal.Receipt, drifts []capture.Drift) {
	for _, row := range r.Actions {
		switch {
		case row.State == capture.Skipped:
			t.fenced(row, whereSweep, capture.Stale(row.Reason))
		case row.State == capture.Pending && row.Repair > 0:
			kind, on := drifted(drifts, row.Key)
			t.drift.WithLabelValues(string(kind)).Inc()
			t.log.Warn("the provider does not show what was done: repairing", append(attributes(row), "drift", kind, "on", on)...)
		case row.State == capture.Pending:
			t.log.Info("action planned", attributes(row)...)
		case row.State == capture.Approved && row.Unanswered > 0:
			t.log.Warn("an attempt has not ended in time: it is repeated", attributes(row)...)
		}
	}
	for _, s := range r.Fenced {
		t.fenced(s.Action, whereImport, s.Why)
	}
}

// drifted is what has become of a key, and on which other NICs it is.
func drifted(drifts []capture.Drift, k capture.Key) (capture.DriftKind, []string) {
	for i := range drifts {
		if drifts[i].Key == k {
			return drifts[i].Kind, drifts[i].On
		}
	}
	return capture.DriftNotShown, nil // a release, or another NIC
}

// renewed tells that the lease cannot be renewed, and that it can again; once each.
func (t *announcer) renewed(err error, holds bool) {
	t.alive.Set(map[bool]float64{true: 1}[holds])
	switch failed := err != nil; {
	case failed && !t.silent:
		t.log.Warn("the lease is not renewed: when it has ended nothing new is begun, and others take over", "error", err)
		t.silent = true
	case !failed && t.silent:
		t.log.Info("the lease is renewed again")
		t.silent = false
	}
}

// paced tells that a provider has throttled a lane, and that it has not for long (a rate of 0).
func (t *announcer) paced(l lane, rate float64) {
	what := l.what()
	if rate > 0 {
		t.log.Info("the provider throttles: its calls begin one after the other", "providerRef", l.profile, "of", what, "perSecond", math.Round(rate*10)/10)
		return
	}
	t.log.Info("the provider throttles no more", "providerRef", l.profile, "of", what)
}

// contested tells that another member and this node take addresses from each other, once until
// they no longer do.
func (t *announcer) contested(contests []capture.Contest) {
	if len(contests) > 0 && !t.contests {
		c := &contests[0]
		t.log.Warn("another member takes what this one takes: their configurations differ", "addresses", len(contests), "first", c.Key.String(), "rival", c.Rival.String(), "turns", c.Turns)
	}
	t.contests = len(contests) > 0
}

// mastered tells what is known of a VRRP instance, whenever that changes.
func (t *announcer) mastered(s vrrp.State) {
	t.log.Info("VRRP instance", "instance", s.Instance, "word", s.Word, "proven", s.Proven, "reason", s.Reason, "priority", s.Priority)
}

func (t *announcer) fenced(row capture.Action, where string, why capture.Stale) {
	t.metrics.fenced.WithLabelValues(where, why.Why()).Inc()
	t.log.Info("action fenced", append(attributes(row), "where", where, "why", why)...)
}

func (t *announcer) began(row capture.Action) {
	t.log.Info("action begins", append(attributes(row), "attempt", row.Attempts)...)
}

// ended tells how an attempt ended, and by which the provider's answer came too late to count.
func (t *announcer) ended(row capture.Action, end ending, took time.Duration, superseded bool) {
	if end.stale != "" {
		t.fenced(row, whereExecution, end.stale)
		return
	}
	outcome := string(end.outcome)
	if outcome == "" {
		outcome = "unasked"
	}
	t.actions.WithLabelValues(string(row.Verb), outcome).Inc()
	t.duration.WithLabelValues(string(row.Verb)).Observe(took.Seconds())
	args := append(attributes(row), "attempt", row.Attempts, "outcome", outcome, "seconds", took.Seconds())
	switch {
	case row.State == capture.Succeeded && superseded:
		t.log.Warn("action succeeded too late: the epoch has moved on, and what it did is repaired", args...)
	case row.State == capture.Succeeded:
		t.success.Set(float64(time.Now().Unix()))
		t.log.Info("action succeeded", args...)
	case end.outcome == executor.OutcomeThrottled:
		t.log.Info("the provider asks for patience", append(args, "code", end.Code, "again", row.NotBefore.UTC())...)
	default:
		t.log.Warn("action failed", append(args, "code", end.Code, "reason", row.Reason, "again", row.NotBefore.UTC())...)
	}
}

func attributes(row capture.Action) []any {
	return []any{"action", row.ID(), "key", row.Key.String(), "epoch", row.Epoch, "verb", row.Verb, "nic", row.NIC}
}

// asked tells what somebody has asked for that changes something, and has got. Of an approval
// the journal has the name, too; of a drain, nothing else has.
func (t *announcer) asked(who, what string, args ...any) {
	t.log.Info("asked by a person", append([]any{"who", who, "what", what}, args...)...)
}

// configured tells which configuration is in force.
func (t *announcer) configured(c *Config, node string) {
	t.log.Info("configuration in force", "files", c.Files, "digest", c.Digest, "pools", len(c.Pools), "policyEnabled", c.Policy.Enabled)
	if !c.Serves(node) {
		t.log.Warn("this node is a member of no pool: it captures nothing, and gives up what it holds under this name; --node has to be a nodeRef")
	}
}

// judged tells whether the configuration on disk is one that can be taken; when it is not, the
// one before stays in force.
func (t *announcer) judged(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.trouble = nil
		t.metrics.refused.Set(0)
		return
	}
	t.trouble = problems(err)
	t.metrics.refused.Set(1)
	t.log.Error("the configuration is refused, the old one stays in force", "problems", t.trouble)
}

// problems are those of the configuration on disk, none when it is in force.
func (t *announcer) problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trouble
}

// problems are the lines of an error that joins several.
func problems(err error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range joined.Unwrap() {
		list = append(list, e.Error())
	}
	return list
}
