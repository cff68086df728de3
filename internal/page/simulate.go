package page

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// Request is what a page asks its simulator.
type Request struct {
	Files []struct {
		Name string `json:"name"`
		Text string `json:"text"`
	} `json:"files"`
	Pools []string `json:"pools"` // all if empty
	Zone  string   `json:"zone"`  // that of the windows if empty
	At    string   `json:"at"`    // RFC 3339
	Days  int      `json:"days"`  // from 1 to MostDays
}

// Answer is what the simulator says. Either Error is set, as tasuki plan would print it, or the
// others.
type Answer struct {
	HTML    string `json:"html"` // as WritePlans writes it
	Verdict string `json:"verdict"`
	Error   string `json:"error"`
}

// MostDays is how far windows are looked ahead.
const MostDays = 400

// reader is made once, as the rules of its kinds take long to compile.
var reader = sync.OnceValues(func() (*manifest.Reader, error) { return manifest.NewReader(rotator.Kinds(deploy.CRD())...) })

// Simulate plans for files.
func Simulate(r Request) Answer {
	html, verdict, err := simulate(r)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	return Answer{HTML: html, Verdict: verdict}
}

func simulate(r Request) (html, verdict string, err error) {
	from, err := time.Parse(time.RFC3339, strings.TrimSpace(r.At))
	if err != nil {
		return "", "", fmt.Errorf("planned from %q: write a time such as 2026-12-02T02:00:00Z or 2026-12-02T11:00:00+09:00", r.At)
	}
	if r.Days < 1 || r.Days > MostDays {
		return "", "", fmt.Errorf("%d days: write a number from 1 to %d", r.Days, MostDays)
	}
	reader, err := reader()
	if err != nil {
		return "", "", err
	}
	var files []manifest.File
	for _, f := range r.Files {
		files = append(files, manifest.File{Name: f.Name, Text: []byte(f.Text)})
	}
	read, err := reader.ReadFiles(files)
	if err != nil {
		return "", "", err
	}
	objects, notes, err := rotator.ObjectsOf(read)
	if err != nil {
		return "", "", err
	}
	to := from.AddDate(0, 0, r.Days)
	plans, err := objects.PlansOf(r.Pools, from, to)
	if err != nil {
		return "", "", err
	}
	if r.Zone != "" {
		zone, err := time.LoadLocation(r.Zone)
		if err != nil {
			return "", "", fmt.Errorf("time zone %q is not known here", r.Zone)
		}
		for i := range plans {
			plans[i].Zone = zone
		}
	}
	said := []string{"Nothing is lost, and no finding is fatal."}
	if text, _ := rotator.Verdict(plans); text != "" {
		said[0] = text + "."
	}
	for _, n := range notes {
		said = append(said, n+".")
	}
	var out strings.Builder
	err = WritePlans(&out, plans, from, to)
	return out.String(), strings.Join(said, " "), err
}
