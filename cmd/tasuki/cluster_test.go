package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Whoever asks a cluster that is not there, or that lacks something, is told what to do.
func TestAClusterThatCannotBeAsked(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "nowhere"))
	var out strings.Builder
	const want = "tasuki: find the cluster: there is no kubeconfig: set $KUBECONFIG, or give --kubeconfig (tasuki plan -f reads files and needs no cluster)\n"
	if code := run(t.Context(), []string{"status"}, &out, &out); code != exitFailure || out.String() != want {
		t.Errorf("exit code %d, and it says %q", code, out.String())
	}
	other := errors.New("any other")
	if err := advised(other); err != other {
		t.Errorf("%v becomes %v", other, err)
	}
	for kind, want := range map[schema.GroupKind]string{
		{Group: "karpenter.sh", Kind: "NodePool"}:          "this cluster has no Karpenter that serves karpenter.sh/v1: list: no matches for kind \"NodePool\"",
		{Group: "noderotation.io", Kind: "RotationPolicy"}: "tasuki is not installed in this cluster (kubectl apply -k deploy does it; tasuki plan -f plans without): list: no matches",
	} {
		if err := advised(fmt.Errorf("list: %w", &meta.NoKindMatchError{GroupKind: kind})); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The flags of kubectl that name a cluster and a user do what they do there.
func TestTheFlagsOfKubectl(t *testing.T) {
	var asked http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Clone()
		http.NotFound(w, r)
	}))
	defer server.Close()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "nowhere"))
	var out strings.Builder
	run(t.Context(), []string{"status", "-s", server.URL, "--as", "ken", "--as-group", "ops", "--as-group", "sre"}, &out, &out)
	if asked.Get("Impersonate-User") != "ken" || strings.Join(asked.Values("Impersonate-Group"), ",") != "ops,sre" {
		t.Errorf("the cluster was asked with %v\n%s", asked, out.String())
	}
}
