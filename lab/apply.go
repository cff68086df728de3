package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager owns what Apply writes.
const fieldManager = "tasuki-lab"

// servedWithin is how long a new kind may take to be served after its CRD was applied.
const servedWithin = 20 * time.Second

// Apply brings objects into the lab as its administrator, by server-side apply, document by document in the given order.
// Documents are YAML, several per manifest, Lists too; a namespaced object without a namespace goes to "default". CRDs
// are waited for, so their objects may follow in the same call.
func (l *Lab) Apply(ctx context.Context, manifests ...[]byte) error {
	var objects []*unstructured.Unstructured
	for i, manifest := range manifests {
		parsed, err := parseManifest(manifest)
		if err != nil {
			return fmt.Errorf("manifest %d of %d: %w", i+1, len(manifests), err)
		}
		objects = append(objects, parsed...)
	}
	a, err := l.applier()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !isCRD(object) {
			if err := a.awaitCRDs(ctx); err != nil {
				return err
			}
		}
		if err := a.apply(ctx, object); err != nil {
			return fmt.Errorf("applying %s to lab %s: %w", describe(object), l.Name(), err)
		}
	}
	return a.awaitCRDs(ctx)
}

// parseManifest reads all objects of a multi-document YAML.
func parseManifest(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for number := 1; ; number++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &object.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d has no kind or no apiVersion", number)
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		if err := object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		}); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
	}
}

// applier applies objects, learning new kinds as their CRDs come.
type applier struct {
	client  dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	pending []string // CRDs applied but not yet seen Established
}

func (l *Lab) applier() (*applier, error) {
	config, err := l.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to lab %s: %w", l.Name(), err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to lab %s: %w", l.Name(), err)
	}
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))}, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
		last = a.applyOnce(ctx, object)
		if last == nil {
			return true, nil
		}
		if notServed(last) {
			a.mapper.Reset()
			return false, nil
		}
		return false, last
	})
	if err != nil && last != nil && ctx.Err() == nil {
		return last
	}
	if err == nil && isCRD(object) {
		a.pending = append(a.pending, object.GetName())
	}
	return err
}

func (a *applier) applyOnce(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var target dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object = object.DeepCopy()
			object.SetNamespace(metav1.NamespaceDefault)
		}
		target = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = target.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// notServed tells a kind that is not served (yet) from an object that cannot be applied.
func notServed(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	// A missing namespace is named in the details; a path that is not served has nothing to name.
	details := status.Status().Details
	return details == nil || details.Kind == "" || len(details.Causes) > 0
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func isCRD(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: crds.Group, Kind: "CustomResourceDefinition"}
}

// awaitCRDs waits until every CRD applied so far is Established.
func (a *applier) awaitCRDs(ctx context.Context) error {
	for ; len(a.pending) > 0; a.pending = a.pending[1:] {
		name := a.pending[0]
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
			crd, err := a.client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return established(crd), nil
		})
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s is not Established after %s: %w", name, servedWithin, err)
		}
		a.mapper.Reset()
	}
	return nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

func describe(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
