package lan

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor/linux"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// The captured address, and the LAN.
const (
	iface    = "lan0"
	instance = "VI_1"
	captured = "10.77.1.100"
)

// refresh is how often a holder announces the address again.
const refresh = 5 * time.Second

// beDriver has the binary of the tests be the driver of a host.
const beDriver = "drive"

// TestMain lets the binary of the tests be what runs on a host, in its namespace.
func TestMain(m *testing.M) {
	args := append(os.Args, "", "")
	var err error
	switch args[1] {
	case beDriver:
		err = drive(filepath.Join(args[3], args[2]+"-fifo"))
	case beAgent:
		err = serve(args[2], args[3])
	case beExecutor:
		os.Exit(execute(os.Stdin, os.Stdout))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// driver captures the address while keepalived is proven to be MASTER.
type driver struct {
	watch *vrrp.Watch
	addr  netip.Addr

	mu     sync.Mutex
	cancel context.CancelFunc // of the assertion on its way
	wait   sync.WaitGroup
}

func drive(fifo string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	d := &driver{addr: netip.MustParseAddr(captured), cancel: func() {}}
	var err error
	if d.watch, err = vrrp.New(fifo, 0, d.changed, instance); err != nil {
		return err
	}
	if err := linux.Withdraw(iface, d.addr); err != nil {
		return err
	}
	if _, err := linux.Forward(iface, true); err != nil {
		return err
	}
	go func() {
		err := linux.Ups(ctx, iface, func() {
			fmt.Println("up")
			d.changed(d.watch.State(instance))
		})
		if err != nil {
			fmt.Println("failed:", err)
		}
	}()
	d.watch.Run(ctx)
	return nil
}

// changed asserts or withdraws. It does not wait for announcements: nothing of the FIFO is
// read meanwhile.
func (d *driver) changed(s vrrp.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel()
	d.wait.Wait()
	fmt.Printf("%d %s proven=%v %s\n", s.Sequence, s.Word, s.Proven, s.Reason)
	if !d.watch.State(instance).Proven {
		if err := linux.Withdraw(iface, d.addr); err != nil {
			fmt.Println("failed:", err)
		}
		fmt.Println("withdrawn")
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.wait.Go(func() {
		if _, err := linux.Assign(ctx, iface, d.addr); err != nil && ctx.Err() == nil {
			fmt.Println("failed:", err)
			return
		}
		fmt.Println("asserted")
		// A rival that was heard by the LAN and not by keepalived has left its mark in caches.
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(refresh):
				if err := linux.Announce(iface, d.addr); err != nil {
					fmt.Println("failed:", err)
				}
			}
		}
	})
}
