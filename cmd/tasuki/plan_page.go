package main

import (
	"io"

	"github.com/tasuki-io/tasuki/internal/build"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/page"
	"github.com/tasuki-io/tasuki/internal/simulator"
)

// builtIn is the simulator, which tests leave out, as their output would be full of it.
var builtIn = simulator.Read

// writePage writes plans as a page, in which what they were made of can be edited.
func writePage(out io.Writer, in input, p page.Page) error {
	var err error
	if p.Simulator, err = builtIn(); err != nil {
		return err
	}
	p.Source, p.Notes, p.Version, p.Files = in.source, in.notes, build.Version(), in.files
	if p.Files == nil && p.Simulator.Wasm != "" {
		policies, others, err := in.objects.Documents()
		if err != nil {
			return err
		}
		p.Files = []manifest.File{{Name: "policies.yaml", Text: policies}, {Name: "cluster.yaml", Text: others}}
	}
	return p.Write(out)
}
