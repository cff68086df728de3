package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
	"github.com/tasuki-io/tasuki/lab"
)

// due is why a node is due at its age, with every operand (§3.2).
type due struct {
	threshold, expireAfter, period, tRot time.Duration
	chances                              int
	readyTimeout, grace, slack           time.Duration
}

func dueOf(p *rotation.Policy, expireAfter, grace time.Duration) due {
	t := p.Terms(&expireAfter, &grace)
	return due{
		threshold: t.Threshold, expireAfter: expireAfter, period: p.Measure.Period, tRot: t.TRot, chances: p.Chances,
		readyTimeout: p.ReadyTimeout, grace: grace, slack: t.TRot - p.ReadyTimeout - grace,
	}
}

func (d due) String() string {
	return fmt.Sprintf("a node is due past the age of %s = expireAfter %s - (K %d x P %s + t_rot %s)",
		brief(d.threshold), brief(d.expireAfter), d.chances, brief(d.period), brief(d.tRot))
}

func (d due) rotation() string {
	return fmt.Sprintf("t_rot %s = readyTimeout %s + terminationGracePeriod %s + buffer %s",
		brief(d.tRot), brief(d.readyTimeout), brief(d.grace), brief(d.slack))
}

// readDue derives it from what the cluster holds: the policy as admission has defaulted
// it, and the terms of the NodeClaim itself.
func readDue(ctx context.Context, l *lab.Lab, claim string) (due, error) {
	config, err := l.RESTConfig()
	if err != nil {
		return due{}, err
	}
	c, err := client.New(config, client.Options{Scheme: rotator.Scheme()})
	if err != nil {
		return due{}, fmt.Errorf("connect to lab %s: %w", l.Name(), err)
	}
	var policy v1alpha1.RotationPolicy
	if err := c.Get(ctx, client.ObjectKey{Name: "web"}, &policy); err != nil {
		return due{}, fmt.Errorf("read RotationPolicy web: %w", err)
	}
	var node karpv1.NodeClaim
	if err := c.Get(ctx, client.ObjectKey{Name: claim}, &node); err != nil {
		return due{}, fmt.Errorf("read NodeClaim %s: %w", claim, err)
	}
	if node.Spec.ExpireAfter.Duration == nil || node.Spec.TerminationGracePeriod == nil {
		return due{}, fmt.Errorf("NodeClaim %s has no expireAfter or no terminationGracePeriod: it would never be due", claim)
	}
	p := rotator.PolicyFrom(&policy, time.Now())
	if p.Invalid != "" {
		return due{}, fmt.Errorf("%s", p.Invalid)
	}
	return dueOf(p, *node.Spec.ExpireAfter.Duration, node.Spec.TerminationGracePeriod.Duration), nil
}

// brief is a duration without its trailing zeros: 20m, not 20m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// clock is a duration in minutes and seconds: 1:05.
func clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
