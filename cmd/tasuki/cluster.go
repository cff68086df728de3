package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/tasuki-io/tasuki/internal/rotator"
)

// cluster is the one that a command is about, named as kubectl has it.
type cluster struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	named      *pflag.FlagSet // the flags that name it
}

// shownFlags are those of kubectl's that the help lists; the others work, too.
var shownFlags = []string{"kubeconfig", "context", "cluster", "user", "as", "as-group", "server", "request-timeout"}

func (c *cluster) flags(cmd *cobra.Command) {
	c.named = pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	c.named.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file (default: that of kubectl, $KUBECONFIG or ~/.kube/config)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{} // -n is the controller's, whatever the kubeconfig says
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&c.overrides, c.named, names)
	c.named.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags, f.Name) })
	cmd.Flags().AddFlagSet(c.named)
	_ = cmd.MarkFlagFilename("kubeconfig")
	for _, flag := range []string{"context", "cluster", "user"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, c.completeEntry(flag))
	}
}

// isNamed reports whether a flag names a cluster.
func (c *cluster) isNamed() (named bool) {
	c.named.VisitAll(func(f *pflag.Flag) { named = named || f.Changed })
	return named
}

// reader reads it from the API server itself.
func (c *cluster) reader() (client.Reader, error) { return c.client() }

// client reads and writes it at the API server itself.
func (c *cluster) client() (client.Client, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	made, err := client.New(config, client.Options{Scheme: rotator.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("set up the client: %w", err)
	}
	return made, nil
}

func (c *cluster) config() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules(), &c.overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("find the cluster: there is no kubeconfig: set $KUBECONFIG, or give --kubeconfig (tasuki plan -f reads files and needs no cluster)")
	}
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// advised is an error of a cluster that lacks what is asked for, with what to do.
func advised(err error) error {
	switch {
	case !meta.IsNoMatchError(err):
		return err
	case strings.Contains(err.Error(), karpapis.Group):
		return fmt.Errorf("this cluster has no Karpenter that serves %s/v1: %w", karpapis.Group, err)
	}
	return fmt.Errorf("tasuki is not installed in this cluster (kubectl apply -k deploy does it; tasuki plan -f plans without): %w", err)
}

// rules say where its kubeconfig is.
func (c *cluster) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return rules
}
