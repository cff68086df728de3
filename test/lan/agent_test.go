package lan

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/linux"
)

// The agent of a host, and the executor that it starts, are the binary of the tests.
const (
	beAgent    = "agent"
	beExecutor = "linux" // the name of the provider is what an executor is called with
)

const pool = `apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: lan}
spec:
  prefix: 10.77.0.0/16
  addresses: [{address: ` + captured + `, owner: {site: osaka}}]
  members:
  - nodeRef: a
    site: tokyo
    role: onprem
    placement: {group: lan}
    capture: {type: proxy-arp, interface: ` + iface + `, gratuitousARP: true, activeWhen: {type: vrrp-master, instance: ` + instance + `}}
  - nodeRef: b
    site: tokyo
    role: onprem
    placement: {group: lan}
    capture: {type: proxy-arp, interface: ` + iface + `, gratuitousARP: true, activeWhen: {type: vrrp-master, instance: ` + instance + `}}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: open}
spec:
  enabled: true
  dryRunOnly: false
  requireApproval: false
  allowedProviders: [linux]
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]
  allowedCIDRs: [10.77.0.0/16]
  maxActionsPerRun: 10
`

// serve is an agent of a host, whose claims the other one shares.
func serve(name, dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return agent.Serve(ctx, agent.Options{
		Config: filepath.Join(dir, "pool.yaml"), Node: name, State: filepath.Join(dir, name+"-state"), Claims: filepath.Join(dir, "claims.db"),
		Executor: self, MetricsAddress: "0", VRRPFIFO: filepath.Join(dir, name+"-fifo"), VRRPAdvert: time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
}

func execute(stdin io.Reader, stdout io.Writer) int {
	return executor.Serve(context.Background(), stdin, stdout, map[string]executor.Execute{beExecutor: linux.Execute})
}

// What the agent says.
const (
	proven    = "proven=true"
	withdrawn = "nothing is answered for any more"
)

// TestTwoAgentsOnOneLAN tells the same stories of the agent itself, with all that is between the
// FIFO and the kernel: claims that both share, journal, policy, executors.
func TestTwoAgentsOnOneLAN(t *testing.T) {
	w := newWorld(t, beAgent)
	a, b := w.a, w.b
	start := w.now()
	w.only(a.mac)
	w.announcedBy(mark{}, a.mac)
	w.neverTwo(start)

	story := w.stories()

	story("c19: a reload closes the FIFO, and the state is proven again", func(t *testing.T, since mark) {
		at := a.told()
		if err := a.keepalived.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		at = a.await(at, withdrawn)
		a.await(at, proven)
		w.announcedBy(since, a.mac)
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("the agent of the MASTER is started anew", func(t *testing.T, since mark) {
		at := a.told()
		if err := a.driver.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		a.await(at, withdrawn)
		a.drive()
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("the MASTER is killed, stops to answer at once, and the other takes over", func(t *testing.T, since mark) {
		at := a.told()
		a.kill()
		a.await(at, withdrawn)
		w.only(b.mac)
		w.announcedBy(since, b.mac)
		a.start()
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("c18: the MASTER is frozen, and the backup answers; after it goes on, one does", func(t *testing.T, since mark) {
		at := a.told()
		a.signal(syscall.SIGSTOP)
		a.await(at, withdrawn)
		w.only(b.mac)
		a.signal(syscall.SIGCONT)
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("c21: a rival that is deaf takes the address, and MASTER_RX_LOWER_PRI takes it back", func(t *testing.T, since mark) {
		at := a.told()
		b.deaf(true)
		w.announcedBy(since, b.mac)
		heard := w.now()
		a.await(at, "holder changed")
		w.announcedBy(heard, a.mac)
		b.deaf(false)
		w.only(a.mac)
	})

	story("c20: BACKUP is read late, after MASTER, and is what counts", func(t *testing.T, since mark) {
		at := b.told()
		w.lateBackup()
		w.only(a.mac)
		w.neverTwo(since) // the MASTER that was over was never acted on; read with what followed, it is not even told
		for _, wrong := range []string{proven, "holder changed"} {
			if said := b.saying(at, wrong); said > 0 {
				t.Errorf("b has said %q %d times", wrong, said)
			}
		}
	})

	story("the link of the MASTER goes down and up again, and the address returns", func(t *testing.T, since mark) {
		at := a.told()
		w.in("s", "link set port-a down")
		a.await(at, withdrawn)
		w.only(b.mac)
		w.in("s", "link set port-a up")
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("a partition that the claims bridge: the MASTER that is newer has the address, and the better one when it heals", func(t *testing.T, since mark) {
		w.part(true)
		w.announcedBy(since, b.mac)
		w.only(b.mac)
		w.part(false)
		w.only(a.mac)
		w.announcedBy(since, a.mac)
	})
}
