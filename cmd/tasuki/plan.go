package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/page"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// Exit codes of plan, which differ from those of other commands.
const (
	exitPlanInput = 1 // usage, input, or a cluster that cannot be read
	exitPlanFatal = 2
	exitPlanLoses = 3
)

var planOutputs = []string{"table", "json", "yaml", "html"}

// plan is the command line of `tasuki plan`.
type plan struct {
	cluster
	files  []string
	output string
	at     string
	days   int
	tz     string
}

// planDays is how far a plan looks ahead, unless it is told otherwise.
const planDays = 30

func newPlan() *cobra.Command {
	p := &plan{output: "table"}
	cmd := &cobra.Command{
		Use:   "plan [NODEPOOL...]",
		Short: "Show what the controller makes of a policy, before anything moves",
		Long: `Show what the controller makes of the RotationPolicies and NodePools of a cluster, or of files: which policy governs a
NodePool and why, what follows from it and how, what is wrong with it, when its windows open, and a forecast: which node is
rotated in which window, how long before its deadline, and which is left to expire. Nothing is written.

Without -f it reads the cluster of the kubeconfig. With -f it reads RotationPolicies, NodePools and, if given, NodeClaims,
Nodes and Pods, as kubectl get -o yaml prints them, and refuses what an API server would refuse.

Exit codes: 0 all is well; 1 the command line, the input or the cluster is at fault; 2 a finding is fatal: no node of that
NodePool is rotated; 3 the forecast loses a node to its expiry.`,
		Example: `  tasuki plan
  tasuki plan api --days 90 --tz Local
  tasuki plan -f policy.yaml -f nodepool.yaml
  tasuki plan -f policy.yaml -f nodepool.yaml -f nodeclaims.yaml --at 2026-12-01T00:00:00Z
  kubectl get nodepools,nodeclaims -o yaml | tasuki plan -f policy.yaml -f - -o json
  tasuki plan -o html > plan.html                # and edit the policy in it`,
		ValidArgsFunction: p.completePool,
		RunE:              func(cmd *cobra.Command, pools []string) error { return p.run(cmd, pools) },
	}
	p.cluster.flags(cmd)
	cmd.Flags().StringArrayVarP(&p.files, "filename", "f", nil, "file or directory to read instead of a cluster, - for stdin; may be repeated")
	cmd.Flags().StringVarP(&p.output, "output", "o", p.output, "table, json, yaml or html")
	cmd.Flags().StringVar(&p.at, "at", "", "the instant to plan from, as 2026-12-02T02:00:00Z (default: now)")
	cmd.Flags().IntVar(&p.days, "days", planDays, "how many days to plan for, at most 400")
	cmd.Flags().StringVar(&p.tz, "tz", "", "time `zone` of the table and the page, as Asia/Tokyo, UTC or Local (default: that of the policy's windows, UTC if they are of several)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(planOutputs, cobra.ShellCompDirectiveNoFileComp))
	return exitsUsage(cmd, exitPlanInput)
}

// completePool completes the NodePools of the files, or of the cluster.
func (p *plan) completePool(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(p.files) == 0 {
		return p.completeObject(&karpv1.NodePoolList{}, 0)(cmd, args, word)
	}
	if slices.Contains(p.files, "-") {
		return unanswered(errors.New("NodePools on stdin are not read before the command runs"))
	}
	slices.Sort(p.files)
	p.files = slices.Compact(p.files) // cobra reads the flags of a line that it completes more than once
	in, err := p.read(cmd)
	if err != nil {
		return unanswered(err)
	}
	var names []string
	for _, pool := range in.objects.NodePools {
		if strings.HasPrefix(pool.Name, word) && !slices.Contains(args, pool.Name) {
			names = append(names, pool.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (p *plan) run(cmd *cobra.Command, pools []string) error {
	now, err := p.judge()
	if err != nil {
		return usageError{err}
	}
	zone, err := readZone(p.tz)
	if err != nil {
		return usageError{err}
	}
	in, err := p.read(cmd)
	if err != nil {
		return err
	}
	for _, note := range in.notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "tasuki: %s\n", note)
	}
	if len(p.files) > 0 && len(in.objects.NodePools) == 0 {
		return fmt.Errorf("there is no NodePool to plan for in %s: 'kubectl get nodepools,nodeclaims,nodes -o yaml' has what -f takes", in.source)
	}
	to := now.AddDate(0, 0, p.days)
	plans, err := in.objects.PlansOf(pools, now, to)
	if err != nil {
		return err
	}
	for i, one := range plans {
		if zone != nil {
			plans[i].Zone = zone
		}
		for _, note := range one.Notes {
			fmt.Fprintf(cmd.ErrOrStderr(), "tasuki: NodePool %s: %s\n", one.NodePool, note)
		}
		if n := len(one.Turns); n >= rotation.MostTurns {
			fmt.Fprintf(cmd.ErrOrStderr(), "tasuki: the forecast of NodePool %s ends on %s, as its nodes live too briefly\n", one.NodePool, one.Turns[n-1].Start.UTC().Format(time.RFC3339))
		}
	}
	if p.output == "html" {
		err = writePage(cmd.OutOrStdout(), in, page.Page{Plans: plans, From: now, To: to, Pools: pools, Zone: p.tz})
	} else {
		err = p.write(cmd.OutOrStdout(), plans, now, to)
	}
	if err != nil {
		return err
	}
	return verdict(plans)
}

// judge reads the flags, and returns the instant to plan from.
func (p *plan) judge() (time.Time, error) {
	switch {
	case !slices.Contains(planOutputs, p.output):
		return time.Time{}, fmt.Errorf("-o %q: write table, json, yaml or html", p.output)
	case p.days < 1 || p.days > page.MostDays:
		return time.Time{}, fmt.Errorf("--days %d: write a number from 1 to %d", p.days, page.MostDays)
	case len(p.files) > 0 && p.isNamed():
		return time.Time{}, errors.New("-f reads files, and --kubeconfig, --context and the like name a cluster: give one of them")
	case p.at == "":
		return time.Now(), nil
	}
	at, err := time.Parse(time.RFC3339, p.at)
	if err != nil {
		return time.Time{}, fmt.Errorf("--at %q: write a time such as 2026-12-02T02:00:00Z or 2026-12-02T11:00:00+09:00", p.at)
	}
	return at, nil
}

// input is what plans are made of.
type input struct {
	objects rotator.Objects
	files   []manifest.File // none of a cluster
	source  string          // for people
	notes   []string
}

// read reads the cluster or the files.
func (p *plan) read(cmd *cobra.Command) (input, error) {
	if len(p.files) == 0 {
		from, err := p.reader()
		if err != nil {
			return input{}, err
		}
		objects, err := rotator.Observe(cmd.Context(), from)
		return input{objects: objects, source: "the cluster"}, err
	}
	reader, err := manifest.NewReader(rotator.Kinds(deploy.CRD())...)
	if err != nil {
		return input{}, err
	}
	files, err := manifest.Load(p.files, cmd.InOrStdin())
	if err != nil {
		return input{}, err
	}
	read, err := reader.ReadFiles(files)
	if err != nil {
		return input{}, err
	}
	objects, notes, err := rotator.ObjectsOf(read)
	return input{objects, files, strings.Join(p.files, ", "), notes}, err
}

func (p *plan) write(out io.Writer, plans []rotator.Plan, from, to time.Time) error {
	switch p.output {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(plans)
	case "yaml":
		text, err := yaml.Marshal(plans)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return planTable(out, plans, from, to)
}

// verdict is the exit code that plans come to, with what there is to say of it.
func verdict(plans []rotator.Plan) error {
	text, fatal := rotator.Verdict(plans)
	switch {
	case text == "":
		return nil
	case fatal:
		return codedError{exitPlanFatal, errors.New(text)}
	}
	return codedError{exitPlanLoses, errors.New(text)}
}
