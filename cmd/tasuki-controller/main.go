// Command tasuki-controller rotates the nodes of Karpenter NodePools before they expire,
// as RotationPolicies say.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	_ "time/tzdata" // windows are in IANA time zones, and an image may have none

	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tasuki-io/tasuki/internal/build"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "tasuki-controller:", err)
		var usage usageError
		if errors.As(err, &usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// thrift is by how many percent the heap grows between collections. A controller mostly waits, and
// what is free in its heap nobody else on the node has.
const thrift = 50

type usageError struct{ error }

func run(args []string, stdout io.Writer) error {
	var o rotator.Options
	fs := flag.NewFlagSet("tasuki-controller", flag.ContinueOnError)
	config.RegisterFlags(fs) // --kubeconfig
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the Prometheus endpoint; 0 serves none")
	fs.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 serves none")
	fs.BoolVar(&o.LeaderElect, "leader-elect", true, "work only while holding the lease, so that replicas can stand by")
	fs.StringVar(&o.Namespace, "namespace", "node-rotation-system", "namespace of the placeholder pods and the lease")
	fs.StringVar(&o.PlaceholderImage, "placeholder-image", "registry.k8s.io/pause:3.10", "image of the placeholder pods")
	fs.StringVar(&o.PlaceholderPriorityClass, "placeholder-priority-class", "noderotation-placeholder", "PriorityClass of the placeholder pods; negative, preemptionPolicy Never")
	version := fs.Bool("version", false, "print the version, and exit")
	format := fs.String("log-format", "json", "json or text")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q: every setting is a flag", fs.Arg(0))}
	}
	if *version {
		fmt.Fprintln(stdout, "tasuki-controller", build.Version())
		return nil
	}
	switch *format {
	case "json":
		ctrl.SetLogger(zap.New(zap.JSONEncoder(rfc3339)))
	case "text":
		ctrl.SetLogger(zap.New(zap.ConsoleEncoder(rfc3339)))
	default:
		return usageError{fmt.Errorf("--log-format %q: write json or text", *format)}
	}
	klog.SetLogger(ctrl.Log) // what client-go says, in the same form
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: give --kubeconfig, or run in a pod: %w", err)
	}
	// Priority and fairness on the API server is the limit that matters; this one only has
	// to let many pools whose windows open at once start together: a dozen requests each.
	cfg.QPS, cfg.Burst = 200, 1200
	cfg.DisableCompression = true // it costs both sides more time than the way to a server nearby
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(thrift)
	}
	return rotator.Run(ctrl.SetupSignalHandler(), cfg, o)
}

func rfc3339(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339TimeEncoder }
