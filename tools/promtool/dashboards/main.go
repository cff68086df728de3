// Command dashboards has Prometheus's own parser read every expression of Grafana dashboards, as
// promtool does not know such files.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	wrong := false
	for _, file := range os.Args[1:] {
		n, err := check(file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			wrong = true
			continue
		}
		fmt.Printf("%s: %d expressions can be parsed\n", file, n)
	}
	if wrong {
		os.Exit(1)
	}
}

// check returns how many expressions a dashboard has. Its variables stand in quotes, and so need
// no values.
func check(file string) (n int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return 0, err
	}
	p := parser.NewParser(parser.Options{})
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if _, err := p.ParseExpr(target.Expr); err != nil {
				return n, fmt.Errorf("panel %q: %s: %w", panel.Title, target.Expr, err)
			}
			n++
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("there is no expression in it")
	}
	return n, nil
}
