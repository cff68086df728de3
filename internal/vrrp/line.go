package vrrp

import (
	"fmt"
	"strconv"
	"strings"
)

// Word is what keepalived says of the state of an instance.
type Word string

// The words that are states. Unknown is none: nothing was said, or it no longer counts.
const (
	Unknown Word = ""
	Master  Word = "MASTER"
	Backup  Word = "BACKUP"
	Fault   Word = "FAULT"
	Stop    Word = "STOP"
	Deleted Word = "DELETED"
)

// The words that are news of a state.
const (
	rxLower        Word = "MASTER_RX_LOWER_PRI" // it is MASTER, and has heard a rival of lower priority
	masterPriority Word = "MASTER_PRIORITY"
	backupPriority Word = "BACKUP_PRIORITY"
)

// line is one line of a notify FIFO, such as `INSTANCE "VI_1" MASTER 100`.
type line struct {
	group    bool // of a sync group, whose name is no instance's
	name     string
	word     Word
	priority int // effective, 0 to 255; 0 for a group
}

// parse reads a line without its end.
func parse(s string) (line, error) {
	kind, rest, _ := strings.Cut(s, ` "`)
	if kind != "INSTANCE" && kind != "GROUP" {
		return line{}, fmt.Errorf("line %q is of no INSTANCE and no GROUP", s)
	}
	at := strings.LastIndex(rest, `" `)
	if at <= 0 {
		return line{}, fmt.Errorf("line %q has no name in quotes", s)
	}
	word, number, _ := strings.Cut(rest[at+2:], " ")
	priority, err := strconv.ParseUint(number, 10, 8)
	if err != nil {
		return line{}, fmt.Errorf("line %q does not end with a priority of 0 to 255", s)
	}
	switch w := Word(word); w {
	case Master, Backup, Fault, Stop, Deleted, rxLower, masterPriority, backupPriority:
		return line{group: kind == "GROUP", name: rest[:at], word: w, priority: int(priority)}, nil
	}
	return line{}, fmt.Errorf("line %q has the word %q, which is none of keepalived's", s, word)
}
