package executortest

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// Check is a test of an executor against a fake.
type Check struct {
	*testing.T
	holders func(netip.Addr) []string
}

// NewCheck begins a test in the environment of a fake.
func NewCheck(t *testing.T, f interface {
	Environment() []string
	Holders(netip.Addr) []string
}) *Check {
	for _, entry := range f.Environment() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	return &Check{t, f.Holders}
}

// Want ends the test if a result has another outcome, and fails it if its message lacks a word.
func (c *Check) Want(r executor.Result, want executor.Outcome, says ...string) {
	c.Helper()
	if r.Outcome != want {
		c.Fatalf("outcome %s (code %q, message %q), want %s", r.Outcome, r.Code, r.Message, want)
	}
	for _, s := range says {
		if !strings.Contains(r.Message, s) {
			c.Errorf("message %q does not say %q", r.Message, s)
		}
	}
}

// WantOn fails the test if an address is on other NICs than these.
func (c *Check) WantOn(a netip.Addr, nics ...string) {
	c.Helper()
	if got := c.holders(a); strings.Join(got, " ") != strings.Join(nics, " ") {
		c.Errorf("%s is on %v, want %v", a, got, nics)
	}
}
