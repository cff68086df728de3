package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/page"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

const (
	asks        = 15 * time.Second // how often a page asks for news
	rereads     = 5 * time.Second  // how often the cluster is read at most, whoever asks
	readTimeout = 30 * time.Second // of a cluster that does not answer
)

// source reads the cluster.
type source func(ctx context.Context) (rotator.Objects, error)

// listenLoopback listens where only this machine can ask: the pages show the cluster to whoever
// asks.
func listenLoopback(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usageError{fmt.Errorf("--serve %q: write an address and a port, such as 127.0.0.1:8088", addr)}
	}
	if !loopback(host) {
		return nil, usageError{fmt.Errorf("--serve %q: the pages show the cluster to whoever asks: write an address of this machine alone, such as 127.0.0.1:8088, and reach it from elsewhere through ssh -L", addr)}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve pages: %w", err)
	}
	return l, nil
}

// loopback reports a name or address that is this machine's alone.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// servePages serves the plans of a cluster for the next days as a page that keeps up with it,
// until ctx ends, and says where. Nothing is written. The cluster is read when somebody looks,
// and at most once in rereads.
func servePages(ctx context.Context, addr string, from source, days int, out io.Writer) error {
	l, err := listenLoopback(addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The plans are at http://%s/ until this is interrupted.\n", l.Addr())
	s := &http.Server{Handler: (&pages{from: from, days: days, now: time.Now}).routes(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve pages: %w", err)
	}
	return nil
}

// pages is the server.
type pages struct {
	from source
	days int
	now  func() time.Time

	mu   sync.Mutex // one reads, and the others wait for what it finds
	last look
}

// look is what was found in the cluster.
type look struct {
	at    time.Time
	in    input
	plans []rotator.Plan
	err   error
}

func (p *pages) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.whole)
	mux.HandleFunc("GET /"+page.Fragment, p.plans)
	return guarded(mux)
}

// guarded answers requests that are for this machine by name, so that no page of another origin
// reads the cluster through a name that it has turned to this address.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !loopback(strings.Trim(host, "[]")) {
			http.Error(w, fmt.Sprintf("%q is not a name of this machine alone: ask for 127.0.0.1 or localhost", r.Host), http.StatusForbidden)
			return
		}
		for key, value := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(key, value)
		}
		next.ServeHTTP(w, r)
	})
}

func (p *pages) whole(w http.ResponseWriter, r *http.Request) {
	p.answer(w, r, func(out io.Writer, l look, to time.Time) error {
		return writePage(out, l.in, page.Page{Plans: l.plans, From: l.at, To: to, Live: asks})
	})
}

func (p *pages) plans(w http.ResponseWriter, r *http.Request) {
	p.answer(w, r, func(out io.Writer, l look, to time.Time) error { return page.WritePlans(out, l.plans, l.at, to) })
}

func (p *pages) answer(w http.ResponseWriter, r *http.Request, write func(out io.Writer, l look, to time.Time) error) {
	l := p.look(r.Context())
	var out bytes.Buffer
	if l.err == nil {
		l.err = write(&out, l, p.until(l.at))
	}
	if l.err != nil {
		http.Error(w, fmt.Sprintf("the cluster cannot be shown: %v", l.err), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w) // who asked may be gone
}

func (p *pages) until(from time.Time) time.Time { return from.AddDate(0, 0, p.days) }

// look reads the cluster, unless that was done a moment ago. A look that fails counts: a cluster
// that ails is not asked more often. It is of use to others than the one who asked first, who may
// go before it is over.
func (p *pages) look(ctx context.Context) look {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.last.at.IsZero() || now.Sub(p.last.at) >= rereads {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		objects, err := p.from(ctx)
		l := look{at: p.now(), in: input{objects: objects, source: "the cluster as it is"}, err: err}
		if err == nil {
			l.plans = objects.Plans(l.at, p.until(l.at))
		}
		p.last = l
	}
	return p.last
}
