package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// examplePool is a NodePool in rotation.
func examplePool(t *testing.T) rotator.Objects {
	t.Helper()
	reader, err := manifest.NewReader(rotator.Kinds(deploy.CRD())...)
	if err != nil {
		t.Fatal(err)
	}
	read, err := reader.Read([]string{"../../examples/policy.yaml", "../../examples/nodepool.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := rotator.ObjectsOf(read)
	if err != nil {
		t.Fatal(err)
	}
	objects.NodePools[0].Annotations = map[string]string{
		rotation.AnnotationActive: "api-a", rotation.AnnotationActiveState: rotation.StateDraining, rotation.AnnotationDrainingAt: "2026-12-01T02:10:00Z",
	}
	return objects
}

func get(t *testing.T, h http.Handler, method, path, host string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The server shows what the cluster holds, with the rotation that is under way, and reads it
// again only when that is some seconds old.
func TestPagesOfACluster(t *testing.T) {
	objects := examplePool(t)
	now := time.Date(2026, 12, 1, 2, 30, 0, 0, time.UTC)
	reads, failing := 0, false
	h := (&pages{days: 30, now: func() time.Time { return now }, from: func(ctx context.Context) (rotator.Objects, error) {
		reads++
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("nothing bounds a read of the cluster")
		}
		if failing {
			return rotator.Objects{}, errors.New("no route to host")
		}
		return objects, nil
	}}).routes()
	code, whole := get(t, h, "GET", "/", "127.0.0.1:8088")
	for _, want := range []string{"<!DOCTYPE html>", "data-live=\"15000\"", "A rotation is under way:</strong> of NodeClaim api-a; it drains the old node (draining, surge) since", `datetime="2026-12-01T02:10:00Z"`} {
		if !strings.Contains(whole, want) {
			t.Errorf("%d: the page is without %s", code, want)
		}
	}
	if code, plans := get(t, h, "GET", "/plans", "localhost:8088"); code != 200 || !strings.Contains(plans, "NodePool ") || strings.Contains(plans, "<html") {
		t.Errorf("%d: the plans alone are %.200s", code, plans)
	}
	if reads != 1 {
		t.Errorf("the cluster was read %d times within an instant", reads)
	}
	now = now.Add(rereads)
	failing = true
	for range 3 {
		if code, text := get(t, h, "GET", "/plans", "[::1]:8088"); code != http.StatusBadGateway || text != "the cluster cannot be shown: no route to host\n" {
			t.Errorf("%d: %s", code, text)
		}
	}
	if reads != 2 {
		t.Errorf("a cluster that fails was read %d times", reads-1)
	}
	now, failing = now.Add(rereads), false
	if code, _ := get(t, h, "GET", "/", "127.0.0.1"); code != 200 {
		t.Errorf("%d after the cluster is back", code)
	}
}

// Nobody reads the cluster through another name, and nothing but the pages is there.
func TestPagesAreForThisMachine(t *testing.T) {
	h := (&pages{days: 30, now: time.Now, from: func(context.Context) (rotator.Objects, error) { return rotator.Objects{}, nil }}).routes()
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/", "evil.example:8088", http.StatusForbidden}, {"GET", "/plans", "192.0.2.1", http.StatusForbidden}, {"GET", "/", "", http.StatusForbidden},
		{"POST", "/", "127.0.0.1", http.StatusMethodNotAllowed}, {"GET", "/etc", "127.0.0.1", http.StatusNotFound}, {"GET", "/", "127.0.0.1", http.StatusOK},
	} {
		if code, _ := get(t, h, c.method, c.path, c.host); code != c.want {
			t.Errorf("%s %s of %s: %d, want %d", c.method, c.path, c.host, code, c.want)
		}
	}
	for _, addr := range []string{":0", "0.0.0.0:0", "192.0.2.1:0", "example.com:0", "8088"} {
		err := servePages(context.Background(), addr, nil, 30, io.Discard)
		if !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// The server says where it is, serves, and ends with its context.
func TestServePages(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	said, out := io.Pipe()
	ended := make(chan error)
	objects := examplePool(t)
	go func() {
		ended <- servePages(ctx, "127.0.0.1:0", func(context.Context) (rotator.Objects, error) { return objects, nil }, 30, out)
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(strings.Fields(line)[4] + "plans")
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r.Body.Close()
	if r.StatusCode != 200 || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, header %v", r.StatusCode, r.Header)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
