// Command tasuki-agent moves the mobile addresses of one host, as MobilityPools say.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	_ "time/tzdata" // windows are in IANA time zones, and a host may have none

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/build"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "tasuki-agent:", err)
		os.Exit(code(err))
	}
}

// code is the exit code of an agent that has ended with an error: 2 is for people, as to start
// it again does not help.
func code(err error) int {
	if errors.As(err, &usageError{}) || errors.As(err, &agent.ConfigError{}) {
		return 2
	}
	return 1
}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func run(args []string, stdout, stderr io.Writer) error {
	o, once, err := options(args, stderr)
	if err != nil {
		return err
	}
	if once == onceVersion {
		fmt.Fprintln(stdout, "tasuki-agent", build.Version())
		return nil
	}
	if once != "" {
		config, warnings, err := agent.CheckConfig(o.Config)
		if err != nil {
			return agent.ConfigError{Cause: err}
		}
		if once == onceWithdraw {
			return agent.Withdraw(config, o.Node)
		}
		for _, w := range warnings {
			fmt.Fprintln(stderr, "warning:", w)
		}
		if o.Node != "" && !config.Serves(o.Node) {
			return agent.ConfigError{Cause: fmt.Errorf("node %s is a member of no pool: --node has to be a nodeRef", o.Node)}
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return agent.Serve(ctx, o)
}

// What is done once, without an agent that stays.
const (
	onceCheck    = "check"
	onceWithdraw = "withdraw"
	onceVersion  = "version"
)

func options(args []string, stderr io.Writer) (o agent.Options, once string, err error) {
	var check, withdraw, version bool
	fs := flag.NewFlagSet("tasuki-agent", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.Config, "config", "", "file or directory of MobilityPools, CloudProviderProfiles and a ProviderActionPolicy")
	fs.StringVar(&o.Node, "node", "", "name of this host, as the nodeRef of the pools' members has it")
	fs.StringVar(&o.State, "state", "/var/lib/tasuki", "directory of the journal and the control socket")
	fs.StringVar(&o.Claims, "claims", "", "claims file; the agents of one host may share it (default STATE/claims.db)")
	fs.StringVar(&o.Executor, "executor", "", "program that talks to the providers (default: tasuki-executor beside this program, or in PATH)")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", "127.0.0.1:9480", "address of /metrics and /healthz; 0 serves none")
	fs.StringVar(&o.VRRPFIFO, "vrrp-fifo", "", "whole path of the FIFO that keepalived's vrrp_notify_fifo names, for proxy-arp; without it no instance is ever proven to be MASTER")
	fs.DurationVar(&o.VRRPAdvert, "vrrp-advert-int", time.Second, "longest advert_int of the VRRP instances")
	fs.BoolVar(&withdraw, "withdraw", false, "answer for nothing any more by proxy-arp, and exit; for ExecStopPost")
	fs.BoolVar(&check, "check", false, "judge the configuration, warn of what does nothing or may surprise, say whether --node is in it, and exit")
	fs.BoolVar(&version, "version", false, "print the version, and exit")
	format := fs.String("log-format", "json", "json or text")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, "", err
		}
		return o, "", usageError{err}
	}
	switch {
	case fs.NArg() > 0:
		return o, "", usageError{fmt.Errorf("unexpected argument %q: every setting is a flag", fs.Arg(0))}
	case version:
		return o, onceVersion, nil
	case o.Config == "":
		return o, "", usageError{errors.New("--config is missing: give a file or a directory")}
	case check:
		return o, onceCheck, nil
	case o.Node == "":
		return o, "", usageError{errors.New("--node is missing: give the name of this host, as the pools' members have it")}
	case withdraw:
		return o, onceWithdraw, nil
	case o.VRRPFIFO != "" && !filepath.IsAbs(o.VRRPFIFO):
		return o, "", usageError{fmt.Errorf("--vrrp-fifo %q: give its whole path, spelt as keepalived's vrrp_notify_fifo is", o.VRRPFIFO)}
	case o.VRRPAdvert <= 0:
		return o, "", usageError{fmt.Errorf("--vrrp-advert-int %s: give the longest advert_int of keepalived's instances", o.VRRPAdvert)}
	}
	switch *format {
	case "json":
		o.Log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	case "text":
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	default:
		return o, "", usageError{fmt.Errorf("--log-format %q: write json or text", *format)}
	}
	if o.Executor == "" {
		if o.Executor, err = findExecutor(); err != nil {
			return o, "", err
		}
	}
	return o, "", nil
}

func findExecutor() (string, error) {
	const name = "tasuki-executor"
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), name); exec.Command(beside).Err == nil {
			return beside, nil
		}
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w: install it beside tasuki-agent, or name it with --executor", name, err)
	}
	return filepath.Abs(found)
}
