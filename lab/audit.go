package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// AuditEvent is one write that the API server answered, whatever the answer was. A dry run is none.
type AuditEvent struct {
	Time        time.Time // when the request came in
	User        string
	UserAgent   string
	Verb        string // create, update, patch, delete, deletecollection
	Group       string // "" is the core group
	Resource    string // plural
	Subresource string
	Namespace   string
	Name        string // empty when the server made the name
	Code        int    // HTTP status
}

// String renders the event as one line: user, verb, what, outcome.
func (e AuditEvent) String() string {
	what := e.Resource
	if e.Group != "" {
		what += "." + e.Group
	}
	if e.Subresource != "" {
		what += "/" + e.Subresource
	}
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s %s %s %d", e.Time.Format(time.RFC3339Nano), e.User, e.Verb, what, name, e.Code)
}

// AuditWrites reads the completed writes of one user from an audit log, in the order in which they were answered. A
// ServiceAccount's user is "system:serviceaccount:<namespace>:<name>"; an empty user stands for all. The API server
// writes the log before it answers, so a write that was answered is in it.
func AuditWrites(path, user string) ([]AuditEvent, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	var events []AuditEvent
	in := bufio.NewReaderSize(f, 1<<20)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// A line without its end is still being written.
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log %s: %w", path, err)
		}
		e, ok, err := parseAudit(bytes.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("audit log %s, line %d: %w", path, number, err)
		}
		if ok && (user == "" || e.User == user) {
			events = append(events, e)
		}
	}
}

// auditLine is the part of an audit.k8s.io/v1 Event that is of interest.
type auditLine struct {
	Stage     string
	Verb      string
	URI       string `json:"requestURI"`
	UserAgent string
	User      struct{ Username string }
	ObjectRef *struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	Response  *struct{ Code int } `json:"responseStatus"`
	Received  time.Time           `json:"requestReceivedTimestamp"`
}

func parseAudit(line []byte) (AuditEvent, bool, error) {
	if len(line) == 0 {
		return AuditEvent{}, false, nil
	}
	var l auditLine
	if err := json.Unmarshal(line, &l); err != nil {
		return AuditEvent{}, false, err
	}
	if l.Stage != "ResponseComplete" || l.ObjectRef == nil || l.Response == nil || !isWrite(l.Verb) || strings.Contains(l.URI, "dryRun=All") {
		return AuditEvent{}, false, nil
	}
	return AuditEvent{
		Time: l.Received, User: l.User.Username, UserAgent: l.UserAgent, Verb: l.Verb,
		Group: l.ObjectRef.APIGroup, Resource: l.ObjectRef.Resource, Subresource: l.ObjectRef.Subresource,
		Namespace: l.ObjectRef.Namespace, Name: l.ObjectRef.Name, Code: l.Response.Code,
	}, true, nil
}

func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}
