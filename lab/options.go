package lab

import (
	"fmt"
	"maps"
	"regexp"
	"time"
)

// DefaultName is the lab's name when none is given.
const DefaultName = "default"

// SlowLabel marks the pods that PodReadyDelay and PodDeleteDelay slow down, with the value "true". All other pods are
// ready, and gone, at once.
const SlowLabel = "lab.tasuki.io/slow"

// Options says what lab to bring up. The zero value is the lab "default", dying with this process, with quick pods.
type Options struct {
	// Name tells labs apart: a DNS label, at most 40 characters. Empty means DefaultName.
	Name string
	// Detached lets the lab's processes outlive this one. Otherwise they die with it, whatever kills it.
	Detached bool
	// PodReadyDelay is the time from binding to Ready of a pod labelled SlowLabel: at least this, at most a second more
	// (a pod's conditions carry whole seconds).
	PodReadyDelay time.Duration
	// PodDeleteDelay is the time from the deletion request to the disappearance of a pod labelled SlowLabel: at least
	// this, at most a second more. It is not bounded by the pod's grace period.
	PodDeleteDelay time.Duration
	// Progress hears what Build and Up are doing; nil means silent. ProgressTo writes it as lines. It may be called from
	// several goroutines, one at a time.
	Progress func(Progress)
	// KarpenterEnv adds to or replaces Karpenter's settings, by their environment names (BATCH_IDLE_DURATION, ...).
	KarpenterEnv map[string]string
	// CacheDir holds the built programs (lab/<key>) and the labs (labs/<name>). Empty means $TASUKI_CACHE, and without
	// that the folder "tasuki" in the user's cache folder.
	CacheDir string
}

// settings are the options that shape a lab's components. They are kept in its state, so that a component started later
// gets what it had.
type settings struct {
	Detached       bool              `json:"detached"`
	PodReadyDelay  time.Duration     `json:"podReadyDelay"`
	PodDeleteDelay time.Duration     `json:"podDeleteDelay"`
	KarpenterEnv   map[string]string `json:"karpenterEnv,omitempty"`
}

func (o Options) settings() settings {
	return settings{
		Detached:       o.Detached,
		PodReadyDelay:  o.PodReadyDelay,
		PodDeleteDelay: o.PodDeleteDelay,
		KarpenterEnv:   maps.Clone(o.KarpenterEnv),
	}
}

func (o Options) validate() error {
	if _, err := nameOrDefault(o.Name); err != nil {
		return err
	}
	if o.PodReadyDelay < 0 {
		return fmt.Errorf("pod ready delay %s is negative: give zero or more", o.PodReadyDelay)
	}
	if o.PodDeleteDelay < 0 {
		return fmt.Errorf("pod delete delay %s is negative: give zero or more", o.PodDeleteDelay)
	}
	return nil
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// ValidName says what is wrong with a lab's name, if anything.
func ValidName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("lab name %q: use at most 40 lowercase letters, digits and inner hyphens", name)
	}
	return nil
}

func nameOrDefault(name string) (string, error) {
	if name == "" {
		return DefaultName, nil
	}
	return name, ValidName(name)
}
