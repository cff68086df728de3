package executortest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// fake is what the fakes of all providers have in common: they log what they are asked, let it
// go wrong by rules, and hold it back.
type fake struct {
	api api
	now func() time.Time

	mu     sync.Mutex
	random *rand.Rand
	rules  []*Rule
	before func(Call)
	denied map[string]bool
	calls  []Call

	url    string
	server *http.Server
	closed chan struct{}
}

// api is a provider, as a fake of it is asked. Its methods but ServeHTTP are called with the
// lock of the fake.
type api interface {
	http.Handler
	// settle lets what is due take effect.
	settle()
	// carry carries a call out as far as it is to be.
	carry(r *http.Request, c *Call) (reply, *refusal)
	// refused is a refusal as the provider words it.
	refused(*refusal) reply
}

// reply is an answer to the call of a number.
type reply interface {
	write(w http.ResponseWriter, n int)
}

// refusal is an error that a provider answers.
type refusal struct {
	Status        int
	Code, Message string
}

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status, code, fmt.Sprintf(format, args...)}
}

// begin sets up a fake that lives by a clock; nil is that of the machine. What happens by chance
// does so by one seed.
func (f *fake) begin(a api, clock *Clock) {
	f.api, f.now, f.random = a, time.Now, rand.New(rand.NewPCG(1, 1))
	f.denied, f.closed = map[string]bool{}, make(chan struct{})
	if clock != nil {
		f.now = clock.Now
	}
}

// start serves a fake on loopback until the test is over.
func (f *fake) start(t testing.TB) {
	t.Helper()
	if err := f.Serve("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
}

// Serve listens on an address and serves in the background until Close.
func (f *fake) Serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("serve a fake provider: %w", err)
	}
	f.url = "http://" + l.Addr().String()
	f.server = &http.Server{Handler: f.api, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := f.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("the fake provider at %s stopped: %v", f.url, err))
		}
	}()
	return nil
}

// URL is the endpoint of the API, for executor.Profile, and of what tells a host its identity.
func (f *fake) URL() string { return f.url }

// Close ends the fake, and every call that hangs.
func (f *fake) Close() error {
	close(f.closed)
	return f.server.Close()
}

// Inject adds a rule. The first rule that strikes decides.
func (f *fake) Inject(r Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &r)
}

// Heal takes all rules back.
func (f *fake) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Before has every call wait for a function before it is looked at. A function that blocks
// holds the call back, whatever its caller does meanwhile.
func (f *fake) Before(hook func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = hook
}

// Deny takes the permission for an action from the identity of the host. An action is named as
// the provider's permissions name it.
func (f *fake) Deny(action string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied[action] = true
}

// Calls lists what was asked so far, in the order of arrival, with what has become of it.
func (f *fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api.settle()
	return slices.Clone(f.calls)
}

// handle logs a call, has it carried out or go wrong, and answers.
func (f *fake) handle(w http.ResponseWriter, r *http.Request, c Call) {
	fault, hook := f.arrive(&c)
	if fault != nil && !fault.Carry {
		f.fail(w, r, c.N, fault)
		return
	}
	if hook != nil {
		hook(c)
	}
	out := f.serve(r, &c)
	if fault != nil {
		f.fail(w, r, c.N, fault)
		return
	}
	out.write(w, c.N)
}

// arrive logs a call, and says what is to go wrong with it.
func (f *fake) arrive(c *Call) (*Fault, func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.N, c.At = len(f.calls), f.now()
	f.calls = append(f.calls, *c)
	for _, rule := range f.rules {
		if rule.strikes(*c, f.random) {
			return &rule.Fault, f.before
		}
	}
	return nil, f.before
}

func (f *fake) serve(r *http.Request, c *Call) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api.settle()
	out, refusal := f.api.carry(r, c)
	if refusal != nil {
		c.Code = refusal.Code
		out = f.api.refused(refusal)
	}
	f.calls[c.N] = *c
	f.api.settle()
	return out
}

// fail has a call go wrong after it was, or was not, carried out.
func (f *fake) fail(w http.ResponseWriter, r *http.Request, n int, fault *Fault) {
	f.mu.Lock()
	f.calls[n].Code = fault.Code
	f.mu.Unlock()
	if fault.Hang {
		select {
		case <-r.Context().Done():
		case <-f.closed:
		}
	}
	if fault.Code == "" {
		cut(w)
		return
	}
	f.api.refused(&refusal{fault.Status, fault.Code, fault.Message}).write(w, n)
}

// cut breaks the connection, as one that is reset.
func cut(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func requestID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
