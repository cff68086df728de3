package lab

import (
	"errors"
	"testing"
)

func TestALabThatIsBeingStartedIsLeftAlone(t *testing.T) {
	cache := t.TempDir()
	parent := sleeper(t) // stands for the process that starts the lab
	d := layout(labsDir(cache) + "/a")
	if err := writeFiles(map[string][]byte{string(d) + "/x": nil}); err != nil {
		t.Fatal(err)
	}
	if err := (state{Name: "a", Owner: parent}).write(d); err != nil {
		t.Fatal(err)
	}
	if err := clearRemains(t.Context(), cache, "a"); !errors.Is(err, ErrRunning) {
		t.Errorf("a second Up: got %v, want ErrRunning", err)
	}
	l, err := findIn(cache, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context()); err == nil {
		t.Error("Down removed a lab that another process is starting")
	}
	// The starter is killed: what it left is of no use.
	if err := parent.end(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := clearRemains(t.Context(), cache, "a"); err != nil || isDir(string(d)) {
		t.Errorf("the remains of a start that was killed are still there (%v)", err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Errorf("Down of a lab that is gone: %v", err)
	}
}
