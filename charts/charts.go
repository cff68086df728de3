// Package charts carries the manifests that install tasuki, so that a binary can apply
// precisely what a chart user gets.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed tasuki/crds/*.yaml tasuki/templates/*.yaml
var files embed.FS

// Manifests returns the CustomResourceDefinitions, then the templates, in name order.
func Manifests() ([][]byte, error) {
	var out [][]byte
	for _, dir := range []string{"tasuki/crds", "tasuki/templates"} {
		entries, err := fs.ReadDir(files, dir)
		if err != nil {
			return nil, fmt.Errorf("read the embedded chart: %w", err)
		}
		for _, e := range entries {
			b, err := files.ReadFile(dir + "/" + e.Name())
			if err != nil {
				return nil, fmt.Errorf("read the embedded chart: %w", err)
			}
			out = append(out, b)
		}
	}
	return out, nil
}
