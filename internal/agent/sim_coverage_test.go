package agent

import "slices"

// simMust is what a simulation has to come to, lest it silently stop testing it.
var simMust = []string{
	// What befalls everybody.
	"crash", "reboot", "pause", "clock set", "drain", "undrain", "owned", "reseed", "through none", "long quiet", "decided anew",
	"priority", "configured drain", "address removed", "address added", "pool removed or added", "interface",
	"policy ", "policy enabled", "policy providers", "policy profiles", "policy verbs", "policy cidrs", "policy undo", "policy window", "policy dry",
	"approve", "hasten", "undo", "undo runs", "rolled back", "dry run",
	// The store: partitions, leases that end, those who come back, backups in its place.
	"store fails before", "store fails after", "cut off", "cut off before", "cut off after", "late watch", "overtaken bump",
	"revived", "seized", "store restored", "law: above what the journal knows",
	// The disk and the clouds.
	"disk fails before", "disk fails after",
	"throttled", "retry", "permanent", "unknown", "again", "already so", "lost answer", "late effect", "stale describe", "two steps",
	"taken by hand", "on two NICs", "law: on one NIC again",
	"marker", "skip", "failed", "resume", "repair", "superseded success", "overtaken between read and call", "given up and calls",
	// A LAN.
	"says MASTER", "says BACKUP", "says FAULT", "says STOP", "says MASTER_RX_LOWER_PRI",
	"keepalived ends", "keepalived is stopped", "keepalived is asked", "the FIFO is gone", "held up", "link down", "link up",
	"placed", "withdrawn", "announced", "removed by hand", "the kernel refuses",
	"on a LAN done", "on a LAN already", "on a LAN retry",
	"law: silent without authority", "law: silent without a lease", "law: nothing is placed without authority", "law: one answers",
	"law: asserted again",
}

// simSeldom is what it has to come to when it runs long.
var simSeldom = []string{"killed before", "killed after", "left by an earlier agent", "two answer", "law: a rival is answered"}

// simLong is from how many schedules on a simulation runs long.
const simLong = 2000

// missed lists what so many schedules have not come to.
func missed(seen map[string]int, runs int) []string {
	must := slices.Clone(simMust)
	if runs >= simLong {
		must = append(must, simSeldom...)
	}
	return slices.DeleteFunc(must, func(what string) bool { return seen[what] > 0 })
}
