package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What can be wrong with the way to the API server. Each wraps the next hop of a proxy.

// marked tells the API server's audit log which way a request came.
type marked struct {
	next  http.RoundTripper
	agent string
}

func (m marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", m.agent)
	return m.next.RoundTrip(r)
}

// lagging delivers every watch, and so the caches of whoever watches, this much later.
// Everything else passes at once.
type lagging struct {
	next http.RoundTripper
	lag  time.Duration
}

func (l lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch && err == nil {
		resp.Body = delayed(r.Context(), resp.Body, l.lag)
	}
	return resp, err
}

// delayed hands a body on in order, each part of it when its time has come. It ends with ctx.
func delayed(ctx context.Context, body io.ReadCloser, lag time.Duration) io.ReadCloser {
	type part struct {
		bytes []byte
		due   time.Time
		err   error
	}
	parts := make(chan part, 1<<16)
	go func() {
		b := make([]byte, 32<<10)
		for ctx.Err() == nil {
			n, err := body.Read(b)
			parts <- part{bytes.Clone(b[:n]), time.Now().Add(lag), err}
			if err != nil {
				return
			}
		}
	}()
	out, in := io.Pipe()
	go func() {
		defer body.Close()
		for {
			var p part
			select {
			case <-ctx.Done():
				in.CloseWithError(ctx.Err())
				return
			case p = <-parts:
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(p.due)):
			}
			if _, err := in.Write(p.bytes); err != nil {
				return
			}
			if p.err != nil {
				in.CloseWithError(p.err)
				return
			}
		}
	}()
	return out
}

// faulty fails a share of the requests, each in one of the ways in which an API server, or
// what is in front of it, does.
type faulty struct {
	next http.RoundTripper

	mu    sync.Mutex
	rng   *rand.Rand
	share float64
	made  map[fault]int
}

// fault is one of those ways.
type fault struct {
	done bool // the request is carried out
	code int  // the answer; 0 is none
}

var faults = []fault{{false, 0}, {true, 0}, {true, 504}, {false, 500}, {false, 503}, {false, 429}}

func (f fault) String() string {
	if f.done {
		return fmt.Sprintf("%d though done", f.code)
	}
	return strconv.Itoa(f.code)
}

func newFaulty(next http.RoundTripper, seed uint64) *faulty {
	return &faulty{next: next, rng: rand.New(rand.NewPCG(seed, 0)), made: map[fault]int{}}
}

// fail sets the share of the requests that fail from now on, and returns what has failed.
func (f *faulty) fail(share float64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.share = share
	return fmt.Sprint(f.made)
}

func (f *faulty) draw() (drawn fault, fails bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.Float64() >= f.share {
		return fault{}, false
	}
	drawn = faults[f.rng.IntN(len(faults))]
	f.made[drawn]++
	return drawn, true
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	drawn, fails := f.draw()
	if !fails {
		return f.next.RoundTrip(r)
	}
	if drawn.done {
		resp, err := f.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
	}
	if drawn.code == 0 {
		return nil, errCut
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a fault of the test","code":%d}`, drawn.code)
	resp := &http.Response{
		StatusCode: drawn.code, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
	if drawn.code == http.StatusTooManyRequests {
		resp.Header.Set("Retry-After", "1")
	}
	return resp, nil
}
