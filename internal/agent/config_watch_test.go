package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// watchedConfig is a path that is watched. Whenever it has changed it is loaded again.
type watchedConfig struct {
	t     *testing.T
	pools chan string // the first pool of each configuration that was loaded
}

func watchingConfig(t *testing.T, path string) watchedConfig {
	t.Helper()
	w := watchedConfig{t, make(chan string, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Watch(ctx, path, func() {
			if c, err := LoadConfig(path); err == nil {
				w.pools <- c.Pools[0].Name
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// sees waits until a configuration was loaded. It gives up with the test binary.
func (w watchedConfig) sees(pool string) {
	w.t.Helper()
	for got := range w.pools {
		if got == pool {
			return
		}
	}
}

// replaceConfig puts a file in the place of another at once, as careful editors do.
func replaceConfig(t *testing.T, name, data string) {
	t.Helper()
	writeConfig(t, name+".new", data)
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// linkConfig points a link at something else at once.
func linkConfig(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func TestWatchSeesEditsOfADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	writeConfig(t, filepath.Join(dir, "m.yaml"), minimalConfig("m1"))
	w := watchingConfig(t, dir)
	w.sees("m1")
	writeConfig(t, filepath.Join(dir, "m.yaml"), minimalConfig("m2"))
	w.sees("m2")
	replaceConfig(t, filepath.Join(dir, "m.yaml"), minimalConfig("m3"))
	w.sees("m3")
	writeConfig(t, filepath.Join(dir, "a.yml"), minimalConfig("a1"))
	w.sees("a1")
	if err := os.Remove(filepath.Join(dir, "a.yml")); err != nil {
		t.Fatal(err)
	}
	w.sees("m3")
	writeConfig(t, filepath.Join(dir, "m.yaml"), "kind: [") // is kept out, and does not end the watch
	writeConfig(t, filepath.Join(dir, "m.yaml"), minimalConfig("m4"))
	w.sees("m4")
}

func TestWatchSeesEditsOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "agent.conf")
	writeConfig(t, name, minimalConfig("m1"))
	w := watchingConfig(t, name)
	w.sees("m1")
	writeConfig(t, name, minimalConfig("m2"))
	w.sees("m2")
	replaceConfig(t, name, minimalConfig("m3"))
	w.sees("m3")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	writeConfig(t, name, minimalConfig("m4"))
	w.sees("m4")
}

// Kubernetes writes a new directory, points ..data at it, and removes the old one. The files
// themselves are links through ..data that never change.
func TestWatchSeesAConfigMapThatIsReplaced(t *testing.T) {
	for _, of := range []string{"", "m.yaml"} {
		dir := t.TempDir()
		writeConfig(t, filepath.Join(dir, "..1", "m.yaml"), minimalConfig("m1"))
		linkConfig(t, "..1", filepath.Join(dir, "..data"))
		linkConfig(t, "..data/m.yaml", filepath.Join(dir, "m.yaml"))
		w := watchingConfig(t, filepath.Join(dir, of))
		w.sees("m1")
		for _, step := range [][3]string{{"..1", "..2", "m2"}, {"..2", "..3", "m3"}} {
			writeConfig(t, filepath.Join(dir, step[1], "m.yaml"), minimalConfig(step[2]))
			linkConfig(t, step[1], filepath.Join(dir, "..data"))
			if err := os.RemoveAll(filepath.Join(dir, step[0])); err != nil {
				t.Fatal(err)
			}
			w.sees(step[2])
		}
	}
}

// A release that is switched by a link, and a file that is a link to where it is edited.
func TestWatchFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, filepath.Join(dir, "r1", "m.yaml"), minimalConfig("m1"))
	writeConfig(t, filepath.Join(dir, "r2", "m.yaml"), minimalConfig("m2"))
	linkConfig(t, "r1", filepath.Join(dir, "conf"))
	w := watchingConfig(t, filepath.Join(dir, "conf"))
	w.sees("m1")
	linkConfig(t, "r2", filepath.Join(dir, "conf"))
	w.sees("m2")
	writeConfig(t, filepath.Join(dir, "r2", "m.yaml"), minimalConfig("m3"))
	w.sees("m3")
	writeConfig(t, filepath.Join(dir, "r2", "a.yaml"), minimalConfig("a1"))
	w.sees("a1")
	if err := os.Remove(filepath.Join(dir, "r2", "a.yaml")); err != nil {
		t.Fatal(err)
	}
	w.sees("m3")

	writeConfig(t, filepath.Join(dir, "elsewhere", "x"), minimalConfig("x1"))
	linkConfig(t, filepath.Join(dir, "elsewhere", "x"), filepath.Join(dir, "r2", "m.yaml"))
	w.sees("x1")
	writeConfig(t, filepath.Join(dir, "elsewhere", "x"), minimalConfig("x2"))
	w.sees("x2")
}

// Somebody moves the directory away and puts another there.
func TestWatchFollowsADirectoryThatIsReplaced(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "conf")
	writeConfig(t, filepath.Join(dir, "m.yaml"), minimalConfig("m1"))
	w := watchingConfig(t, dir)
	w.sees("m1")
	writeConfig(t, filepath.Join(parent, "next", "m.yaml"), minimalConfig("m2"))
	if err := os.Rename(dir, filepath.Join(parent, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(parent, "next"), dir); err != nil {
		t.Fatal(err)
	}
	w.sees("m2")
	writeConfig(t, filepath.Join(dir, "m.yaml"), minimalConfig("m3"))
	w.sees("m3")
}

func TestWatchOfNothing(t *testing.T) {
	if err := Watch(t.Context(), filepath.Join(t.TempDir(), "no", "conf"), func() {}); err == nil {
		t.Error("a path in a directory that is not there is watched")
	}
}

// What else happens in the directory is no reason to read it again.
func TestWatchLeavesOthersAlone(t *testing.T) {
	dir := &configWatch{path: "/etc/tasuki", files: map[string]bool{"/etc/tasuki": true, "/srv/x": true}}
	file := &configWatch{path: "/etc/tasuki/a.yaml", files: map[string]bool{"/etc/tasuki/a.yaml": true}}
	for _, c := range []struct {
		watch *configWatch
		name  string
		want  bool
	}{
		{dir, "/etc/tasuki", true}, {dir, "/etc/tasuki/new.yml", true}, {dir, "/etc/tasuki/..data", true}, {dir, "/srv/x", true},
		{dir, "/etc/tasuki/.a.yaml.swp", false}, {dir, "/etc/tasuki/.#a.yaml", false}, {dir, "/etc/other.yaml", false}, {dir, "/srv/y.yaml", false},
		{file, "/etc/tasuki/a.yaml", true}, {file, "/etc/tasuki/..data", true}, {file, "/etc/tasuki/b.yaml", false},
	} {
		if got := c.watch.concerns(c.name); got != c.want {
			t.Errorf("%s concerns %s: %v", c.name, c.watch.path, got)
		}
	}
}

// Writes that follow each other are one change; writes without end are read all the same.
func TestWatchWaitsForRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		changes, calls := make(chan struct{}), 0
		go settleConfig(ctx, changes, func() { calls++ })
		for range 10 {
			changes <- struct{}{}
			time.Sleep(configRest / 2)
		}
		time.Sleep(configRest)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("ten writes are %d changes", calls)
		}
		for range 2 * configHaste / configRest {
			changes <- struct{}{}
			time.Sleep(configRest - time.Millisecond)
		}
		synctest.Wait()
		if calls < 2 {
			t.Error("writes without end are never read")
		}
		cancel()
		synctest.Wait()
	})
}
