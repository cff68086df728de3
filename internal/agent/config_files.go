package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxConfigFile bounds one file, in bytes. 100,000 addresses take about 7 MiB.
const maxConfigFile = 16 << 20

// configFile is a file and what was in it, or why it could not be read.
type configFile struct {
	name string
	data []byte
	err  error
}

// readConfigFiles reads the files that a path stands for, in the order of their names.
//
// A mounted ConfigMap is replaced as a whole, by one link, and read through what the link
// stood for at first: of two halves, each could miss an address that both wholes have.
func readConfigFiles(path string) ([]configFile, error) {
	from := filepath.Clean(path)
	if whole, err := filepath.EvalSymlinks(filepath.Join(path, configMapLink)); err == nil {
		from = whole
	}
	names, err := configNames(from)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds no *.yaml or *.yml file: write at least one %s there", path, kindPool)
	}
	files := make([]configFile, len(names))
	for i, name := range names {
		data, err := readConfigFile(name)
		files[i] = configFile{filepath.Clean(path) + strings.TrimPrefix(name, from), data, err}
	}
	return files, nil
}

// configMapLink is the link by which Kubernetes replaces all files of a mounted ConfigMap at
// once.
const configMapLink = "..data"

// configNames lists the files that a path stands for: itself, or those of a directory.
func configNames(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !isConfigName(e.Name()) {
			continue
		}
		name := filepath.Join(path, e.Name())
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// isConfigName is about files of a directory. A hidden one is an editor's.
func isConfigName(base string) bool {
	ext := filepath.Ext(base)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(base, ".")
}

func readConfigFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, errors.New("this is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxConfigFile {
		return nil, fmt.Errorf("this is larger than %d MiB: split it", maxConfigFile>>20)
	}
	return data, nil
}

func digestConfig(files []configFile) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", f.name, len(f.data))
		h.Write(f.data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
