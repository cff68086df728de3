// Package deploy carries the manifests that install tasuki without Helm: the chart, rendered
// with its defaults. A test of the chart compares the two.
package deploy

import (
	"bytes"
	_ "embed" // the manifest
)

// Manifest is several YAML documents in the order in which they can be applied. The
// CustomResourceDefinition and the namespace, node-rotation-system, are among them.
//
//go:embed tasuki.yaml
var Manifest []byte

// CRD is the CustomResourceDefinition of RotationPolicy alone.
func CRD() []byte {
	for doc := range bytes.SplitSeq(Manifest, []byte("\n---\n")) {
		if bytes.Contains(doc, []byte("\nkind: CustomResourceDefinition\n")) {
			return doc
		}
	}
	panic("deploy/tasuki.yaml has no CustomResourceDefinition: run make generate")
}
