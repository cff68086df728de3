package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// cacheRoot returns the folder that holds built programs and labs.
func cacheRoot(override string) (string, error) {
	if override == "" {
		override = os.Getenv("TASUKI_CACHE")
	}
	if override != "" {
		root, err := filepath.Abs(override)
		if err != nil {
			return "", fmt.Errorf("cache folder %q: %w", override, err)
		}
		return root, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the lab: %w: set TASUKI_CACHE to a folder with 1 GiB of room", err)
	}
	return filepath.Join(user, "tasuki"), nil
}

func buildsDir(root string) string { return filepath.Join(root, "lab") }

func labsDir(root string) string { return filepath.Join(root, "labs") }

// sourceKey names the sources of the programs: the pinned modules, the lab's own etcd main, and how they are built. The
// go version is the other half of a build's name; see buildDirName.
func sourceKey(tools string) (string, error) {
	h := sha256.New()
	for _, name := range keyFiles() {
		content, err := os.ReadFile(filepath.Join(tools, name))
		if err != nil {
			return "", fmt.Errorf("reading the lab's sources: %w", err)
		}
		// The length keeps two neighbouring files from sharing a boundary.
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(name), len(content))
		h.Write(content)
	}
	for _, p := range programs {
		fmt.Fprintf(h, "%s %s %s %q\n", p.name, p.module, p.pkg, p.buildArgs("-"))
	}
	for _, a := range assets {
		fmt.Fprintf(h, "%q\n", a)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// keyFiles are the files under lab/tools that decide what is built.
func keyFiles() []string {
	return []string{
		"kubernetes/go.mod", "kubernetes/go.sum", "kubernetes/etcd/main.go",
		"kwok/go.mod", "kwok/go.sum",
		"karpenter/go.mod", "karpenter/go.sum",
	}
}

func buildDirName(source, goVersion string) string { return source + "-" + goVersion }
