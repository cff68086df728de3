package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tasuki-io/tasuki/internal/rotator"
)

// cluster is the one that a command reads, named as kubectl has it.
type cluster struct{ kubeconfig, context string }

func (c *cluster) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file (default: that of kubectl, $KUBECONFIG or ~/.kube/config)")
	cmd.Flags().StringVar(&c.context, "context", "", "context of the kubeconfig (default: the current one)")
	_ = cmd.MarkFlagFilename("kubeconfig")
}

// named reports whether a flag names a cluster.
func (c *cluster) named() bool { return c.kubeconfig != "" || c.context != "" }

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
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	return config, nil
}
