package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/claims/etcd"
	"github.com/tasuki-io/tasuki/internal/claims/sqlite"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Options are what the command line sets.
type Options struct {
	Config         string        // a file or a directory
	Node           string        // whose addresses the agent moves
	State          string        // the directory of the journal, the socket, and the claims by default
	Claims         string        // the claims file; agents of one host may share it
	Executor       string        // the program that talks to providers
	MetricsAddress string        // "0" serves none
	VRRPFIFO       string        // that keepalived's vrrp_notify_fifo names; "" is none
	VRRPAdvert     time.Duration // the longest advert_int of its instances; zero is 1 s
	Log            *slog.Logger
}

// The files in the state directory.
const (
	claimsFile  = "claims.db"
	journalFile = "journal.db"
	socketFile  = "agent.sock"
	// What tells this agent from another one of the same node.
	identityFile = "agent.id"
)

// ConfigError is a configuration that is refused: somebody has to correct the files.
type ConfigError struct{ Cause error }

// Error tells all problems, one a line.
func (e ConfigError) Error() string {
	return "the configuration is refused:\n  " + strings.Join(problems(e.Cause), "\n  ")
}

func (e ConfigError) Unwrap() error { return e.Cause }

// Socket is where the agent with a state directory answers.
func Socket(state string) string { return filepath.Join(state, socketFile) }

// Serve runs the agent until ctx ends; it then finishes the attempts under way.
func Serve(ctx context.Context, o Options) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // first of all, as it would end the process
	defer signal.Stop(hup)
	sparing()
	config, err := LoadConfig(o.Config)
	if err != nil {
		return ConfigError{err}
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if o.Claims == "" && config.Store.Etcd == nil {
		o.Claims = filepath.Join(o.State, claimsFile)
	}
	rows, err := journal.Open(filepath.Join(o.State, journalFile))
	if err != nil {
		return err
	}
	defer rows.Close()
	store, err := openStore(config.Store, o)
	if err != nil {
		return err
	}
	defer store.Close()
	if o.Claims != "" {
		alone, err := onlyOne(o.Claims, o.Node)
		if err != nil {
			return err
		}
		defer alone.Close()
	}
	a := newAgent(o.Node, config, store, rows, (&executor.Command{Path: o.Executor}).Run, newAnnouncer(o.Log, o.Node))
	a.lan.wire = machine{o.VRRPFIFO, o.VRRPAdvert}
	a.tell.configured(config, o.Node)

	control, err := listen(Socket(o.State))
	if err != nil {
		return err
	}
	defer control.Close()
	metrics, err := listenMetrics(o.MetricsAddress)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return a.reload(ctx, o.Config, hup) })
	group.Go(func() error {
		return serve(ctx, control, &http.Server{Handler: Control{a, rows}.Handler(), ConnContext: withPeer})
	})
	if metrics != nil {
		group.Go(func() error { return serve(ctx, metrics, &http.Server{Handler: a.monitor()}) })
	}
	return group.Wait()
}

// openStore opens the claims store that the configuration names, or the file of this host.
func openStore(c StoreConfig, o Options) (claims.Store, error) {
	if c.Etcd != nil {
		if o.Claims != "" {
			return nil, fmt.Errorf("--claims %s names a file, and the ClaimsStore is etcd: give one of both", o.Claims)
		}
		e := *c.Etcd
		var err error
		if e.Agent, err = identity(o.State); err != nil {
			return nil, err
		}
		return etcd.Open(e)
	}
	return sqlite.Open(o.Claims)
}

// identity is the name of the agent on a state directory, by which the others of its cluster tell
// it from one that has the same node. Its journal is locked.
func identity(state string) (string, error) {
	path := filepath.Join(state, identityFile)
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return string(b), err
	}
	host, err := os.Hostname() // for people, who look for the other one
	if err != nil {
		return "", err
	}
	name := host + "/" + rand.Text()
	return name, os.WriteFile(path, []byte(name), 0o600)
}

// onlyOne refuses a second agent of a node on one claims file: each would give up what the other
// holds, as its own configuration does not know of it.
func onlyOne(path, node string) (*flock.Flock, error) {
	lock := flock.New(path+"."+url.PathEscape(node)+".lock", flock.SetPermissions(0o600))
	switch got, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("the claims file %s cannot be locked for node %s: %w", path, node, err)
	case !got:
		return nil, fmt.Errorf("another agent of node %s is at the claims file %s: put all pools of a node into one configuration, or give it another claims file", node, path)
	}
	return lock, nil
}

// reload takes the configuration into use again whenever it changes, or on SIGHUP. One that is
// refused leaves the old one in force.
func (a *Agent) reload(ctx context.Context, path string, hup <-chan os.Signal) error {
	changed := make(chan struct{}, 1)
	watching := make(chan error, 1)
	go func() {
		watching <- Watch(ctx, path, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	for {
		forced := false
		select {
		case <-ctx.Done():
			return nil
		case err := <-watching:
			if ctx.Err() != nil {
				return nil
			}
			a.tell.log.Error("changes of the configuration are not seen any more: send SIGHUP after each", "path", path, "error", err)
			watching = nil
			continue
		case <-hup:
			forced = true
		case <-changed:
		}
		config, err := LoadConfig(path)
		a.tell.judged(err)
		if err != nil {
			continue
		}
		a.mu.RLock()
		same := config.Digest == a.config.Digest
		a.mu.RUnlock()
		if same && !forced {
			continue
		}
		_ = a.do(ctx, func() { a.configure(config) })
		a.tell.configured(config, a.node)
	}
}

// longestSocket is the longest path of a Unix socket in bytes.
const longestSocket = 107

// listen opens the control socket. One that a dead agent has left is taken over; the journal
// sees to it that no two agents live on one state directory.
func listen(path string) (net.Listener, error) {
	if len(path) > longestSocket {
		return nil, fmt.Errorf("open the control socket: its path %s has more than %d bytes, which the system refuses: shorten --state", path, longestSocket)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old control socket: %w", err)
	}
	mask := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(mask)
	if err != nil {
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	return l, nil
}

func listenMetrics(address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: --metrics-bind-address %s: %w", address, err)
	}
	return l, nil
}

func serve(ctx context.Context, l net.Listener, s *http.Server) error {
	s.ReadTimeout, s.IdleTimeout = 30*time.Second, time.Minute
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// monitor serves the metrics, and whether the agent does its work.
func (a *Agent) monitor() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.tell.register(registry, a)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.ailing(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}

// ailing is why the last pass failed, nil when it did not, or when there was none yet.
func (a *Agent) ailing() error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.failure
}
