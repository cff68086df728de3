package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// proxy is a way to the API server that can be cut at a chosen write.
type proxy struct {
	server *httptest.Server
	next   http.RoundTripper

	mu     sync.Mutex
	writes int
	cut    *cut
}

// cut says where the controller dies.
type cut struct {
	pool string // whose writes count
	at   int    // the number of the write, counted from 1
	lost bool   // the write never arrives; otherwise its answer is lost
	kill func() // returns when the controller is gone

	began bool
	what  string        // the write, once it came
	done  chan struct{} // closed when the controller is gone
}

var errCut = errors.New("the connection is cut")

// newProxy starts a proxy to the lab's API server. It hands the caller's token on and has
// no rights of its own.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	config, err := world.lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("the lab's kubeconfig holds no CA")
	}
	p := &proxy{next: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	p.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      log.New(io.Discard, "", 0),
	})
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// kubeconfig writes a kubeconfig for the controller's ServiceAccount that leads here.
func (p *proxy) kubeconfig(t *testing.T) string {
	t.Helper()
	direct, err := world.lab.KubeconfigFor(world.ctx, trial.Namespace, trial.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(direct)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = p.server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// cutAt kills the controller at its n-th write from now on to a pool's objects. Until heal,
// nothing that it may still have sent goes through.
func (p *proxy) cutAt(pool string, n int, lost bool, kill func()) *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.cut = 0, &cut{pool: pool, at: n, lost: lost, kill: kill, done: make(chan struct{})}
	return p.cut
}

// heal lets everything through again and returns how many writes there were since cutAt.
func (p *proxy) heal() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = nil
	return p.writes
}

// RoundTrip implements http.RoundTripper.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := p.count(r)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return p.next.RoundTrip(r)
	}
	defer close(c.done)
	if c.lost {
		c.kill()
		return nil, errCut
	}
	// The death of the caller must not call the write back.
	resp, err := p.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	c.kill()
	if err == nil {
		resp.Body.Close()
	}
	return nil, errCut
}

// count returns the cut if this request is where it happens.
func (p *proxy) count(r *http.Request) (*cut, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut == nil {
		return nil, nil
	}
	if p.cut.began {
		return nil, errCut
	}
	if !isRotationWrite(r, p.cut.pool) {
		return nil, nil
	}
	p.writes++
	if p.writes != p.cut.at {
		return nil, nil
	}
	p.cut.began, p.cut.what = true, r.Method+" "+r.URL.Path
	return p.cut, nil
}

// isRotationWrite reports a write to a pool's objects, all of whose names hold the pool's.
// Only the path of a creation names nothing, and the controller creates placeholders
// alone. Events, the lease and the status of policies are no part of a rotation.
func isRotationWrite(r *http.Request, pool string) bool {
	switch r.Method {
	case http.MethodPost:
		return strings.HasSuffix(r.URL.Path, "/pods")
	case http.MethodPut, http.MethodPatch, http.MethodDelete:
		return strings.Contains(r.URL.Path, pool) && !strings.HasPrefix(r.URL.Path, "/apis/noderotation.io/")
	}
	return false
}
