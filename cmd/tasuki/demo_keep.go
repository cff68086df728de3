package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// leave hands the lab over to the user, with a controller that outlives the demo.
func (d *demo) leave(ctx context.Context) error {
	d.witness.Close()
	ended := d.controller.End() != ""
	d.controller.Stop()
	out := d.screen.out
	fmt.Fprintf(out, "\nLab %s keeps running.", d.lab.Name())
	var failed error
	if !ended {
		c, err := trial.LeaveController(ctx, d.lab, d.binary, d.logs())
		if failed = err; err == nil {
			fmt.Fprintf(out, " So does the controller: process %d, which logs to\n%s\n", c.PID(), c.Log())
			fmt.Fprint(out, "It will replace the new node as well, when that is due and ten minutes have passed since this rotation.\n")
		}
	}
	if ended || failed != nil {
		kubeconfig, err := d.lab.KubeconfigFor(ctx, trial.Namespace, trial.ServiceAccount)
		failed = errors.Join(failed, err)
		fmt.Fprintf(out, " The controller does not; start it with\n\n  %s %s\n", d.binary, strings.Join(trial.ControllerArgs(kubeconfig, "0"), " "))
	}
	fmt.Fprintf(out, `
  export KUBECONFIG=%s
  kubectl get nodepools,nodeclaims,nodes,pods -A
  kubectl get nodeclaims -w
  kubectl get events -A --field-selector reportingComponent=tasuki-controller
  kubectl get nodepool web -o jsonpath='{.metadata.annotations}'
  kubectl annotate nodepool web noderotation.io/freeze=2030-01-01T00:00:00Z

Stop it with '%s'; the controller ends by itself some seconds later, without its lease.
`, d.lab.Kubeconfig(), labCommand("down", d.lab.Name()))
	return failed
}
