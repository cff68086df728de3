package main

import (
	"bufio"
	"io"
	"text/tabwriter"
)

// grid lines up the columns of rows whose cells end with tabs. Nothing of it is written before
// Flush, and then at once: a tabwriter alone writes cell by cell.
type grid struct {
	*tabwriter.Writer
	out *bufio.Writer
}

func newGrid(out io.Writer) grid {
	b := bufio.NewWriter(out)
	return grid{tabwriter.NewWriter(b, 0, 0, 2, ' ', 0), b}
}

// Flush writes the rows since the last one.
func (g grid) Flush() error {
	if err := g.Writer.Flush(); err != nil {
		return err
	}
	return g.out.Flush()
}
