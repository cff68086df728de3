//go:build ignore

// Builds cmd/tasuki-wasm into assets, with the glue of the Go that built it.
package main

import (
	"bytes"
	"compress/gzip"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "tasuki-wasm-")
	check(err)
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "tasuki.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", built, "../../cmd/tasuki-wasm")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	check(cmd.Run())
	root, err := exec.Command("go", "env", "GOROOT").Output()
	check(err)
	pack(built, "assets/tasuki.wasm.gz")
	pack(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"), "assets/wasm_exec.js.gz")
}

// pack writes a file under gzip, unless it is there already: what does not change is not built in
// anew.
func pack(from, to string) {
	data, err := os.ReadFile(from)
	check(err)
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	check(err)
	_, err = w.Write(data)
	check(err)
	check(w.Close())
	if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, out.Bytes()) {
		return
	}
	check(os.WriteFile(to, out.Bytes(), 0o644))
}

func check(err error) {
	if err != nil {
		log.Fatalf("build the simulator: %v", err)
	}
}
