package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tasuki-io/tasuki/internal/rotator"
)

// apiServer serves objects on the wire: what tasuki's commands ask of a cluster, by a fake of
// controller-runtime, which keeps versions and refuses what is stale.
type apiServer struct {
	*httptest.Server
	store client.WithWatch

	mu     sync.Mutex
	denied map[string]bool   // "verb resource"
	moves  map[string]string // an annotation that somebody else writes right before a patch, by resource
}

// resources are those that it knows.
var resources = map[string]schema.GroupVersionKind{
	"nodes":                {Version: "v1", Kind: "Node"},
	"pods":                 {Version: "v1", Kind: "Pod"},
	"nodepools":            {Group: "karpenter.sh", Version: "v1", Kind: "NodePool"},
	"nodeclaims":           {Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"},
	"rotationpolicies":     {Group: "noderotation.io", Version: "v1alpha1", Kind: "RotationPolicy"},
	"poddisruptionbudgets": {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	"selfsubjectreviews":   {Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"},
}

// newAPIServer serves the objects of a YAML stream, and writes a kubeconfig into a directory.
func newAPIServer(dir, objects string) (*apiServer, string, error) {
	scheme := rotator.Scheme()
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var all []client.Object
	documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(objects), 4096)
	for {
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		o, _, err := decoder.Decode(raw, nil, nil)
		if err != nil {
			return nil, "", err
		}
		of := o.(client.Object)
		if of.GetUID() == "" {
			of.SetUID(types.UID(of.GetName()))
		}
		all = append(all, of)
	}
	s := &apiServer{denied: map[string]bool{}, moves: map[string]string{}}
	s.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: there
clusters: [{name: there, cluster: {server: %q}}]
contexts: [{name: there, context: {cluster: there, user: ken}}]
users: [{name: ken, user: {token: t}}]
`, s.URL)
	return s, kubeconfig, os.WriteFile(kubeconfig, []byte(text), 0o600)
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	answer, err := s.answer(w, r)
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		st := status.Status()
		st.Kind, st.APIVersion = "Status", "v1"
		respond(w, int(st.Code), st)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case answer != nil:
		respond(w, http.StatusOK, answer)
	}
}

func respond(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *apiServer) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch { // discovery
	case r.URL.Path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, nil
	case r.URL.Path == "/apis":
		return groups(), nil
	case path[0] == "api" && len(path) == 2:
		return resourcesOf("", path[1]), nil
	case path[0] == "apis" && len(path) == 3:
		return resourcesOf(path[1], path[2]), nil
	}
	rest := path[2:]
	if path[0] == "apis" {
		rest = path[3:]
	}
	namespace := ""
	if rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	resource, name := rest[0], ""
	if len(rest) > 1 {
		name = rest[1]
	}
	return s.access(w, r, resource, client.ObjectKey{Namespace: namespace, Name: name})
}

func (s *apiServer) access(w http.ResponseWriter, r *http.Request, resource string, key client.ObjectKey) (any, error) {
	gvk := resources[resource]
	group := schema.GroupResource{Group: gvk.Group, Resource: resource}
	verb := map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodPost: "create"}[r.Method]
	query := r.URL.Query()
	if verb == "get" && key.Name == "" {
		verb = "list"
		if query.Get("watch") != "" {
			verb = "watch"
		}
	}
	s.mu.Lock()
	denied, move := s.denied[verb+" "+resource], s.moves[resource]
	s.mu.Unlock()
	if denied {
		return nil, apierrors.NewForbidden(group, key.Name, errors.New("no such right"))
	}
	if resource == "selfsubjectreviews" {
		return map[string]any{"kind": gvk.Kind, "apiVersion": gvk.GroupVersion().String(), "status": map[string]any{"userInfo": map[string]any{"username": "ken@example.com"}}}, nil
	}
	made, err := s.store.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	o := made.(client.Object)
	switch verb {
	case "get":
		if err := s.store.Get(r.Context(), key, o); err != nil {
			return nil, err
		}
		return typed(o, gvk), nil
	case "patch":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		o.SetName(key.Name)
		if move != "" {
			if err := s.store.Patch(r.Context(), o, client.RawPatch(types.MergePatchType, annotation(move))); err != nil {
				return nil, err
			}
		}
		if err := s.store.Patch(r.Context(), o, client.RawPatch(types.PatchType(r.Header.Get("Content-Type")), body)); err != nil {
			return nil, err
		}
		return typed(o, gvk), nil
	}
	list, err := s.store.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	selected, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selected}, client.InNamespace(key.Namespace)}
	if of := query.Get("fieldSelector"); of != "" && verb == "list" {
		selector, err := fields.ParseSelector(of)
		if err != nil {
			return nil, err
		}
		options = append(options, client.MatchingFieldsSelector{Selector: selector})
	}
	if verb == "watch" {
		if query.Get("sendInitialEvents") != "" {
			return nil, apierrors.NewInvalid(gvk.GroupKind(), "", nil) // as a server does that cannot
		}
		return nil, s.watch(w, r, list.(client.ObjectList), gvk, options)
	}
	if err := s.store.List(r.Context(), list.(client.ObjectList), options...); err != nil {
		return nil, err
	}
	return typed(list, gvk.GroupVersion().WithKind(gvk.Kind+"List")), nil
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, list client.ObjectList, gvk schema.GroupVersionKind, options []client.ListOption) error {
	events, err := s.store.Watch(r.Context(), list, options...)
	if err != nil {
		return err
	}
	defer events.Stop()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher)
	flush.Flush()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case e, ok := <-events.ResultChan():
			if !ok {
				return nil
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": e.Type, "object": typed(e.Object, gvk)})
			flush.Flush()
		}
	}
}

// annotation is a merge patch that sets key=value.
func annotation(text string) []byte {
	key, value, _ := strings.Cut(text, "=")
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	return body
}

// typed is an object as JSON that says what it is.
func typed(o runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o
}

func groups() metav1.APIGroupList {
	l := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	seen := map[string]bool{"": true}
	for _, gvk := range resources {
		if seen[gvk.Group] {
			continue
		}
		seen[gvk.Group] = true
		version := metav1.GroupVersionForDiscovery{GroupVersion: gvk.GroupVersion().String(), Version: gvk.Version}
		l.Groups = append(l.Groups, metav1.APIGroup{Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return l
}

func resourcesOf(group, version string) metav1.APIResourceList {
	gv := schema.GroupVersion{Group: group, Version: version}
	l := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for name, gvk := range resources {
		if gvk.GroupVersion() == gv {
			l.APIResources = append(l.APIResources, metav1.APIResource{
				Name: name, Kind: gvk.Kind, Namespaced: name == "pods" || name == "poddisruptionbudgets", Verbs: metav1.Verbs{"get", "list", "watch", "patch", "create"},
			})
		}
	}
	return l
}

// allow grants a right, such as "list pods", or takes it away.
func (s *apiServer) allow(right string, granted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[right] = !granted
}

// annotate writes an annotation, key=value, as somebody else.
func (s *apiServer) annotate(t *testing.T, o client.Object, text string) {
	t.Helper()
	if err := s.store.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, annotation(text))); err != nil {
		t.Fatal(err)
	}
}

// annotations are those of an object of a resource.
func (s *apiServer) annotations(resource, name string) (string, error) {
	made, err := s.store.Scheme().New(resources[resource])
	if err != nil {
		return "", err
	}
	o := made.(client.Object)
	if err := s.store.Get(context.Background(), client.ObjectKey{Name: name}, o); err != nil {
		return "", err
	}
	var out bytes.Buffer
	for k, v := range o.GetAnnotations() {
		fmt.Fprintf(&out, "%s=%s\n", k, v)
	}
	return out.String(), nil
}
