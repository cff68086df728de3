package lab

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADeadComponentShowsItsLastLinesAndItsLog(t *testing.T) {
	l := &Lab{dir: layout(t.TempDir())}
	var all strings.Builder
	for i := range 100 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	if err := writeFiles(map[string][]byte{l.LogPath(Scheduler): []byte(all.String())}); err != nil {
		t.Fatal(err)
	}
	got := l.componentError(Scheduler, "died").Error()
	for _, want := range []string{Scheduler + " died", l.LogPath(Scheduler), "line 80\n", "line 99"} {
		if !strings.Contains(got, want) {
			t.Errorf("the error lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "line 79\n") {
		t.Errorf("the error shows more than %d lines:\n%s", shownLines, got)
	}
	if got := l.componentError(KWOK, "died").Error(); !strings.Contains(got, "its log is empty") {
		t.Errorf("without a log the error says %q", got)
	}
}

func TestAProbeSaysWhichCheckFailed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac failed: reason withheld\nreadyz check failed\n")
	}))
	defer server.Close()
	err := probe(t.Context(), server.Client(), server.URL)
	if err == nil || !strings.HasSuffix(err.Error(), ": etcd, poststarthook/rbac") {
		t.Errorf("got %v: want the two failed checks", err)
	}
}

func TestLastLinesOfALongLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("filler\n", 1<<15)+"a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"filler", "a", "b"}, lastLines(path, 3)); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
}

func TestComponentsGetNothingFromTheUsersEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.invalid")
	t.Setenv("ETCD_NAME", "other")
	l := &Lab{dir: layout(t.TempDir())}
	for _, name := range Components() {
		c, err := l.component(name)
		if err != nil {
			t.Fatal(err)
		}
		if env := strings.Join(c.env, "\n"); strings.Contains(env, "PROXY") || strings.Contains(env, "ETCD_") {
			t.Errorf("%s gets %s", name, env)
		}
	}
	if _, err := l.component("kubelet"); err == nil || !strings.Contains(err.Error(), Scheduler) {
		t.Errorf("an unknown component: got %v, want an error that names the known ones", err)
	}
}

func TestKarpenterSettingsCanBeReplaced(t *testing.T) {
	c := karpenter("/lab", ports{}, map[string]string{"BATCH_IDLE_DURATION": "3s", "FEATURE_GATES": "NodeRepair=true"})
	env := strings.Join(c.env, "\n")
	if !strings.Contains(env, "BATCH_IDLE_DURATION=3s") || strings.Contains(env, "BATCH_IDLE_DURATION=1s") {
		t.Errorf("a setting was not replaced:\n%s", env)
	}
	if !strings.Contains(env, "FEATURE_GATES=NodeRepair=true") {
		t.Errorf("a setting was not added:\n%s", env)
	}
}
