// Package simulator carries the simulator of pages: cmd/tasuki-wasm as go generate leaves it in
// assets. What is generated is not committed: a command that was built without it has none, and
// says so.
package simulator

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/tasuki-io/tasuki/internal/page"
)

//go:generate go run generate.go

//go:embed assets
var assets embed.FS

// Read returns the simulator that is built in, the zero value if there is none.
func Read() (page.Simulator, error) {
	wasm, err := assets.ReadFile("assets/tasuki.wasm.gz")
	if err != nil {
		return page.Simulator{}, nil
	}
	packed, err := assets.ReadFile("assets/wasm_exec.js.gz")
	if err != nil {
		return page.Simulator{}, fmt.Errorf("the simulator that is built in: %w: build again", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return page.Simulator{}, fmt.Errorf("the simulator that is built in: %w: build again", err)
	}
	exec, err := io.ReadAll(r)
	if err != nil {
		return page.Simulator{}, fmt.Errorf("the simulator that is built in: %w: build again", err)
	}
	return page.Simulator{Exec: string(exec), Wasm: base64.StdEncoding.EncodeToString(wasm)}, nil
}
