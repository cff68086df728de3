package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sources copies what decides about a build into a folder where a test may change it.
func sources(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range keyFiles() {
		content, err := os.ReadFile(filepath.Join("tools", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := writeFiles(map[string][]byte{filepath.Join(to, name): content}); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestEverySourceFileChangesTheKey(t *testing.T) {
	tools := sources(t)
	before, err := sourceKey(tools)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := sourceKey(tools); again != before {
		t.Fatalf("the key of the same sources changed from %s to %s", before, again)
	}
	for _, name := range keyFiles() {
		path := filepath.Join(tools, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(content, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		if after, _ := sourceKey(tools); after == before {
			t.Errorf("a change of %s did not change the key", name)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuildFlagsChangeTheKey(t *testing.T) {
	tools := sources(t)
	before, err := sourceKey(tools)
	if err != nil {
		t.Fatal(err)
	}
	flags := programs[0].flags
	t.Cleanup(func() { programs[0].flags = flags })
	programs[0].flags += " -X main.x=y"
	if after, _ := sourceKey(tools); after == before {
		t.Error("a change of the build flags did not change the key")
	}
}

func TestKubernetesReleaseIsThePinnedOne(t *testing.T) {
	mod, err := os.ReadFile("tools/kubernetes/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/kubernetes " + kubernetesRelease + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("tools/kubernetes/go.mod does not require %q: adapt kubernetesRelease", want)
	}
}

func TestWithoutGoAnEarlierBuildIsFound(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"aaaa-go1.26.8", "aaaa-go1.27.0" + partial, "bbbb-go1.27.0"} {
		if err := os.MkdirAll(filepath.Join(buildsDir(root), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, err := builtBefore(root, "aaaa")
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Base(found.Dir); got != "aaaa-go1.26.8" {
		t.Errorf("found %s: want the finished build of the same sources", got)
	}
	if _, err := builtBefore(root, "cccc"); err != errNoGo {
		t.Errorf("no build of these sources: got error %v, want %v", err, errNoGo)
	}
}

func TestTheSourceTreeIsFoundFromAnyFolderInIt(t *testing.T) {
	want, err := filepath.Abs("tools")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("tools/kubernetes/etcd") // in a nested module, whose go.mod is not the one
	got, err := toolsDir()
	if err != nil || got != want {
		t.Errorf("toolsDir() = %q, %v: want %q", got, err, want)
	}
}

func TestAForeignModuleIsNotTheSourceTree(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "lab", "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	for mod, want := range map[string]bool{
		"module github.com/tasuki-io/tasuki\n":         true,
		"// x\nmodule \"github.com/tasuki-io/tasuki\"": true,
		"module github.com/tasuki-io/tasuki/lab\n":     false,
		"module example.com/other\n":                   false,
		"":                                             false,
	} {
		if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte(mod), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, got := toolsIn(root); got != want {
			t.Errorf("go.mod %q: found = %t, want %t", mod, got, want)
		}
	}
}
