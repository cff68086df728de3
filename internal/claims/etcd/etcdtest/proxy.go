package etcdtest

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP connection's way to a member, which a test cuts and stalls.
type Proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	resumed *sync.Cond
	stalled bool
	barred  func(from string) bool // whose connections do not get through
	open    map[net.Conn]string
}

// serverFrom precedes the name of the member that dials another.
const serverFrom = "\r\nX-Server-From: "

// NewProxy listens until the test is over.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &Proxy{listener: l, target: target, open: map[net.Conn]string{}, barred: func(string) bool { return false }}
	p.resumed = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		_ = l.Close()
		p.Set(false, func(string) bool { return true })
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// Addr is where it listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set says who is barred from now on, and whether nothing of the others moves.
func (p *Proxy) Set(stalled bool, barred func(from string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled, p.barred = stalled, barred
	for c, from := range p.open {
		if barred(from) {
			_ = c.Close()
		}
	}
	p.resumed.Broadcast()
}

func (p *Proxy) serve(in net.Conn) {
	defer in.Close()
	first := make([]byte, 4096)
	n, err := in.Read(first)
	if err != nil {
		return
	}
	from := ""
	if _, after, ok := bytes.Cut(first[:n], []byte(serverFrom)); ok {
		name, _, _ := bytes.Cut(after, []byte("\r\n"))
		from = string(name)
	}
	out, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	barred := p.barred(from)
	p.open[in] = from
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, in)
	}()
	if barred {
		return
	}
	go func() {
		defer in.Close()
		p.copy(in, out, nil)
	}()
	p.copy(out, in, first[:n])
}

func (p *Proxy) copy(to, from net.Conn, first []byte) {
	buf := append(make([]byte, 0, 64<<10), first...)
	for {
		if len(buf) == 0 {
			n, err := from.Read(buf[:cap(buf)])
			if err != nil {
				return
			}
			buf = buf[:n]
		}
		p.mu.Lock()
		for p.stalled {
			p.resumed.Wait()
		}
		p.mu.Unlock()
		if _, err := to.Write(buf); err != nil {
			return
		}
		buf = buf[:0]
	}
}
