package manifest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// File is one with its text.
type File struct {
	Name string // as people know it
	Text []byte
}

// Load reads files, the YAML and JSON files of directories in the order of their names, and
// stdin for "-".
func Load(names []string, stdin io.Reader) ([]File, error) {
	var loaded []File
	for _, name := range names {
		files, err := filesOf(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := contents(file, stdin)
			if err != nil {
				return nil, err
			}
			if file == "-" {
				file = "stdin"
			}
			loaded = append(loaded, File{file, data})
		}
	}
	return loaded, nil
}

// filesOf are the files that a name stands for.
func filesOf(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("directory %s holds no .yaml, .yml or .json file", name)
	}
	return files, nil
}

func contents(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return data, nil
}
