package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/claims/sqlite"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// evidence is all that the demo is judged by, after its agents have ended.
type evidence struct {
	lines  []spoken                          // what the agents have logged
	calls  []executortest.Call               // what EC2 was asked
	on     map[netip.Addr][]string           // where EC2 has each address now
	torn   map[string]string                 // addresses that were on two NICs at once
	nics   map[string]executortest.Interface // by node
	claims map[capture.Key]capture.Claim
	rows   map[string][]journal.Row // by node
	events map[string][]journal.Event
	marks  map[string][]capture.Marker
}

// gather reads what is left of a demo.
func (s *captureSite) gather(ctx context.Context) (*evidence, error) {
	s.mu.Lock()
	e := &evidence{
		lines: slices.Clone(s.seen), torn: maps.Clone(s.torn), calls: s.ec2.Calls(), on: map[netip.Addr][]string{}, nics: map[string]executortest.Interface{},
		rows: map[string][]journal.Row{}, events: map[string][]journal.Event{}, marks: map[string][]capture.Marker{},
	}
	s.mu.Unlock()
	slices.SortStableFunc(e.lines, func(a, b spoken) int { return a.at.Compare(b.at) })
	for _, a := range mobile {
		e.on[a] = s.ec2.Holders(a)
	}
	store, err := sqlite.Open(s.claims())
	if err != nil {
		return nil, err
	}
	defer store.Close()
	c, err := store.Changes(ctx, claims.Revision{})
	if err != nil {
		return nil, err
	}
	e.claims = c.Claims
	for _, a := range s.agents {
		e.nics[a.node] = s.ec2.NIC(nicOf(a.node))
		if err := e.read(ctx, a); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// read reads the journal of an agent.
func (e *evidence) read(ctx context.Context, a *captureAgent) error {
	j, err := journal.Open(filepath.Join(a.state, "journal.db"))
	if err != nil {
		return err
	}
	defer j.Close()
	contents, err := j.Load(ctx)
	if err != nil {
		return err
	}
	e.marks[a.node] = contents.Markers
	if e.rows[a.node], err = j.Rows(ctx, journal.Filter{}); err != nil {
		return err
	}
	e.events[a.node], err = j.Events(ctx, "", 0)
	return err
}

// judge prints what has happened, and returns an error when a promise was broken.
func (d *captureDemo) judge(ctx context.Context) error {
	if d.meddle != nil {
		d.meddle(d.site)
	}
	e, err := d.site.gather(ctx)
	if err != nil {
		return err
	}
	out := d.screen.out
	e.summary(out, time.Since(d.begun))
	broken := e.broken()
	if len(broken) == 0 {
		fmt.Fprintf(out, "\nEvery promise was kept.\n")
		return nil
	}
	fmt.Fprintln(out)
	for _, b := range broken {
		fmt.Fprintf(out, "PROMISE BROKEN: %s\n", b)
	}
	return fmt.Errorf("%d of the promises broken, the first: %s", len(broken), broken[0])
}

// bump is a change of a holder, as its writer has logged it.
type bump struct {
	at     time.Time
	epoch  uint64
	holder string
}

// bumps are the changes of holder by key, in the order of their epochs.
func (e *evidence) bumps() map[string][]bump {
	all := map[string][]bump{}
	for _, l := range e.lines {
		if l.line.Message == saidHolder {
			all[l.line.Key] = append(all[l.line.Key], bump{l.at, l.line.Epoch, l.line.To})
		}
	}
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b bump) int { return cmp.Compare(a.epoch, b.epoch) })
	}
	return all
}

// stay is a time that an address has spent on a NIC; on none, it is a gap.
type stay struct {
	nic         string
	since, till time.Time
}

// stays is where an address has been, from the first time that it was anywhere, by the calls
// that took effect.
func (e *evidence) stays(a netip.Addr) (list []stay) {
	took := slices.DeleteFunc(slices.Clone(e.calls), func(c executortest.Call) bool {
		return c.Took.IsZero() || !slices.Contains(c.Addresses, a)
	})
	slices.SortStableFunc(took, func(a, b executortest.Call) int { return a.Took.Compare(b.Took) })
	for _, c := range took {
		now := ""
		if n := len(list); n > 0 {
			now = list[n-1].nic
		}
		to := now
		switch {
		case strings.HasPrefix(c.Action, "Assign"):
			to = c.NIC
		case c.NIC == now:
			to = ""
		}
		if to == now {
			continue
		}
		if n := len(list); n > 0 {
			list[n-1].till = c.Took
		}
		list = append(list, stay{nic: to, since: c.Took})
	}
	return list
}

// longestGap is the longest time that an address was on no NIC, between two on which it was.
func (e *evidence) longestGap() (longest time.Duration) {
	for _, a := range mobile {
		for _, s := range e.stays(a) {
			if s.nic == "" && !s.till.IsZero() {
				longest = max(longest, s.till.Sub(s.since))
			}
		}
	}
	return longest
}

func (e *evidence) summary(out io.Writer, took time.Duration) {
	fmt.Fprintln(out)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-42s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	all := e.bumps()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		address := logLine{Key: key}.address()
		if address == "" {
			continue
		}
		var path []string
		for _, b := range all[key] {
			path = append(path, fmt.Sprintf("%d %s", b.epoch, b.holder))
		}
		row("Epochs of "+address, "%s", strings.Join(path, ", "))
	}
	asked, throttled := map[string]int{}, map[string]int{}
	for _, c := range e.calls {
		asked[c.Action]++
		if c.Code == executortest.Throttled.Code {
			throttled[c.Action]++
		}
	}
	for _, action := range slices.Sorted(maps.Keys(asked)) {
		row("Calls "+action, "%d, %d of them throttled", asked[action], throttled[action])
	}
	fences := map[string]int{}
	for _, l := range e.lines {
		if l.line.Message == saidFenced {
			why, _, _ := strings.Cut(l.line.Why, ":")
			fences[fmt.Sprintf("at the %s, %s (%s)", l.line.Where, why, l.node)]++
		}
	}
	for _, f := range slices.Sorted(maps.Keys(fences)) {
		row("Fenced "+f, "%d", fences[f])
	}
	drift := 0
	for _, l := range e.lines {
		if l.line.Message == saidDrift {
			drift++
		}
	}
	row("Drift repaired", "%d", drift)
	gap := "none: it was on a NIC all the time"
	if longest := e.longestGap(); longest > 0 {
		gap = lasted(longest)
	}
	row("Longest time without a holder", "%s", gap)
	row("Total", "%s", lasted(took))
}
