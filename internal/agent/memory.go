package agent

import (
	"os"
	"runtime/debug"
)

// thrift is by how many percent the heap grows between collections. An agent at rest makes little
// garbage, and what is free in its heap nobody else on the host has.
const thrift = 25

// sparing has the runtime take little memory, unless somebody has told it otherwise.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(thrift)
	}
}

// tidy gives back what the files of the configuration, or the rows of the journal, were read into:
// many times as much as is kept of them.
func (l *loop) tidy() {
	if l.bulk {
		l.bulk = false
		debug.FreeOSMemory()
	}
}
