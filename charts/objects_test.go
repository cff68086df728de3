package charts_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/tasuki-io/tasuki/charts"
	"github.com/tasuki-io/tasuki/deploy"
)

const root = ".." // of the source tree

// objects are what tasuki is installed with: the chart as its defaults render it, with its
// namespace.
func objects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return read(t, string(deploy.Manifest))
}

// helm runs the real helm, or skips the test.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return tool(t, "helm", args...)
}

func tool(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs " + name + ", whose first build takes minutes: run without -short")
	}
	return charts.Tool(root, name, args...)
}

// render has helm render the chart with these values into the namespace of the defaults.
func render(t *testing.T, values string, args ...string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	file := valuesFile(t)
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, append([]string{"template", "tasuki", "charts/tasuki", "-n", "node-rotation-system", "-f", file}, args...)...)
	if err != nil {
		return nil, err
	}
	return read(t, out), nil
}

// content is a line that is no comment and no separator.
var content = regexp.MustCompile(`(?m)^[^#\s-]`)

// read decodes manifests strictly: a field that its type does not have is an error, and so is
// a kind that is not expected here.
func read(t *testing.T, manifests string) (out []*unstructured.Unstructured) {
	t.Helper()
	strict := serializer.NewCodecFactory(kinds(), serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if content.Find(document) == nil {
			continue
		}
		typed, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		o := &unstructured.Unstructured{}
		if o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
}

// find returns an object by "Kind name", or nil.
func find(objects []*unstructured.Unstructured, what string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind()+" "+o.GetName() == what {
			return o
		}
	}
	return nil
}

func object(t *testing.T, what string) *unstructured.Unstructured {
	t.Helper()
	o := find(objects(t), what)
	if o == nil {
		t.Fatalf("the chart has no %s", what)
	}
	return o
}

func as[T any](t *testing.T, o *unstructured.Unstructured) (out T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in the build
		}
	}
	monitoring := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	s.AddKnownTypes(monitoring, &ServiceMonitor{}, &PrometheusRule{})
	metav1.AddToGroupVersion(s, monitoring)
	return s
}

// ServiceMonitor is what the chart uses of the Prometheus operator's.
type ServiceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (m *ServiceMonitor) DeepCopyObject() runtime.Object { c := *m; return &c }

// PrometheusRule is what the chart uses of the Prometheus operator's.
type PrometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Rules `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (r *PrometheusRule) DeepCopyObject() runtime.Object { c := *r; return &c }

// Rules are a rules file of Prometheus.
type Rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for,omitempty"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// valuesFile is in a folder without a comma or a brace in its name: helm would take the one for a
// list of files, and t.TempDir has them from the name of the test.
func valuesFile(t *testing.T) string {
	dir, err := os.MkdirTemp("", "values")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "values.yaml")
}
