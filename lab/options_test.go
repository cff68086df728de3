package lab

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNamesAreFoldersAndHintsToo(t *testing.T) {
	for name, valid := range map[string]bool{
		"default": true, "a": true, "test-12-a": true, strings.Repeat("a", 40): true,
		"": false, "A": false, "-a": false, "a-": false, "../a": false, "a b": false, strings.Repeat("a", 41): false,
	} {
		if got := ValidName(name) == nil; got != valid {
			t.Errorf("ValidName(%q) allows it: %t, want %t", name, got, valid)
		}
	}
	if name, err := nameOrDefault(""); err != nil || name != DefaultName {
		t.Errorf("without a name: %q, %v", name, err)
	}
}

func TestNegativeDelaysAreRefused(t *testing.T) {
	for _, o := range []Options{{PodReadyDelay: -time.Second}, {PodDeleteDelay: -time.Second}, {Name: "No"}} {
		if _, err := Up(t.Context(), o); err == nil {
			t.Errorf("Up(%+v) was accepted", o)
		}
	}
}

func TestALabThatIsNotUpIsNotFound(t *testing.T) {
	t.Setenv("TASUKI_CACHE", t.TempDir())
	_, err := Find("nowhere")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v: want ErrNotFound that names the lab", err)
	}
}
