package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestManifestsMayHoldSeveralDocumentsAndLists(t *testing.T) {
	objects, err := parseManifest([]byte(`# only a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, describe(o))
	}
	if diff := cmp.Diff([]string{"Namespace a", "ConfigMap a/b", "ConfigMap a/c"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestADocumentThatIsNoObjectIsRefused(t *testing.T) {
	for _, manifest := range []string{"metadata: {name: a}\n", "- a\n- b\n", "a: [\n"} {
		if _, err := parseManifest([]byte(manifest)); err == nil {
			t.Errorf("manifest %q was taken", manifest)
		}
	}
}

func TestOnlyAMissingKindIsWaitedFor(t *testing.T) {
	gone := schema.GroupResource{Resource: "namespaces"}
	notFound := apierrors.NewGenericServerResponse(404, "patch", schema.GroupResource{}, "", "", 0, true)
	for name, c := range map[string]struct {
		err  error
		wait bool
	}{
		"kind unknown to discovery":  {&meta.NoKindMatchError{}, true},
		"path not served yet":        {notFound, true},
		"namespace does not exist":   {apierrors.NewNotFound(gone, "a"), false},
		"object refused":             {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), false},
		"not found, without details": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404}}, true},
	} {
		if got := notServed(c.err); got != c.wait {
			t.Errorf("%s: waited for = %t, want %t", name, got, c.wait)
		}
	}
}
