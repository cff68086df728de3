package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// logLine is a line of an agent's log, as far as the demo understands it.
type logLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"msg"`
	Key     string    `json:"key"`
	Action  string    `json:"action"`
	Epoch   uint64    `json:"epoch"`
	Verb    string    `json:"verb"`
	NIC     string    `json:"nic"`
	Attempt int       `json:"attempt"`

	From, To     string // holders
	Where, Why   string // of the gate
	Code, Reason string
	Outcome      string
	Again        time.Time
	Error        string
	Problems     json.RawMessage
}

// What the demo waits for, as the agents say it.
const (
	saidHolder    = "holder changed"
	saidBegins    = "action begins"
	saidDone      = "action succeeded"
	saidFenced    = "action fenced"
	saidThrottled = "the provider asks for patience"
	saidDrift     = "the provider does not show what was done: repairing"
	saidLate      = "action succeeded too late: the epoch has moved on, and what it did is repaired"
	saidFailed    = "action failed"
	saidPlanned   = "action planned"
	saidInForce   = "configuration in force"
	saidAsked     = "asked by a person"
)

// address is what a line is about: the address, "" for a NIC as a whole.
func (l logLine) address() string {
	_, rest, _ := strings.Cut(l.Key, "/")
	address, _, _ := strings.Cut(rest, "@")
	return strings.Trim(address, "-")
}

// what names the action of a line.
func (l logLine) what() string {
	s := l.Verb + " of " + l.address()
	if l.address() == "" {
		s = l.Verb
	}
	return fmt.Sprintf("%s on %s at epoch %d", s, l.NIC, l.Epoch)
}

// sentence tells a line to a person, "" for what is not worth one.
func (l logLine) sentence() string {
	switch l.Message {
	case saidHolder:
		if l.address() == "" {
			return ""
		}
		return fmt.Sprintf("writes into the claims: %s goes from %s to %s, epoch %d", l.address(), l.From, l.To, l.Epoch)
	case saidBegins, saidPlanned, saidInForce, saidAsked:
		return ""
	case saidDone:
		return fmt.Sprintf("%s: %s", l.what(), l.Outcome)
	case saidFenced:
		return fmt.Sprintf("FENCED at the %s: %s: %s", l.Where, l.what(), l.Why)
	case saidThrottled:
		return fmt.Sprintf("%s: EC2 answers %s; attempt %d comes in %s", l.what(), l.Code, l.Attempt+1, lasted(max(0, l.Again.Sub(l.Time))))
	case saidDrift:
		return fmt.Sprintf("DRIFT: the NIC does not show %s: repairs it by %s", l.address(), l.what())
	case saidLate:
		return fmt.Sprintf("TOO LATE: %s has succeeded, but the epoch has moved on", l.what())
	case saidFailed:
		return fmt.Sprintf("%s failed: %s", l.what(), l.Reason)
	}
	if l.Level == "INFO" {
		return l.Message
	}
	return strings.TrimSpace(strings.Join([]string{l.Level, l.Message, l.Error, string(l.Problems)}, " "))
}
