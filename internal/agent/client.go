package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// Client asks the agent at a control socket.
type Client struct {
	socket string
	http   http.Client
}

// NewClient returns a client of the agent that answers at a socket.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	return c
}

// FaultError is an answer that says why there is none.
type FaultError struct{ Fault }

func (e FaultError) Error() string { return e.Fault.Error }

// Status asks the agent about itself.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.get(ctx, "status", nil, &s)
}

// Captures lists the addresses that the agent's node may capture.
func (c *Client) Captures(ctx context.Context) (list []Capture, err error) {
	return list, c.get(ctx, "captures", nil, &list)
}

// Doctor lists what is wrong as far as the agent knows, and what will be done about it.
func (c *Client) Doctor(ctx context.Context) (list []Ailment, err error) {
	return list, c.get(ctx, "doctor", nil, &list)
}

// Explain tells all about an address, once for each captureDomain of the node.
func (c *Client) Explain(ctx context.Context, address string) (list []Explanation, err error) {
	return list, c.get(ctx, "explain", url.Values{"address": {address}}, &list)
}

// Actions lists rows of the journal, the last written first: those that are not over, all of
// them ("all"), or those of a "state" or an "address". Those of an "id", which may be a handle,
// come with all that a policy lacks.
func (c *Client) Actions(ctx context.Context, q url.Values) (list []Action, err error) {
	return list, c.get(ctx, "actions", q, &list)
}

// Journal lists the last changes of one action, by ID or handle, or of all when that is "", the
// newest last.
func (c *Client) Journal(ctx context.Context, id string, limit int) (list []Event, err error) {
	return list, c.get(ctx, "journal", url.Values{"id": {id}, "limit": {fmt.Sprint(limit)}}, &list)
}

// Approve approves pending actions. It returns those that it has changed.
func (c *Client) Approve(ctx context.Context, ids ...string) ([]string, error) {
	return c.choose(ctx, "approve", ids)
}

// Execute makes approved and failed actions due at once.
func (c *Client) Execute(ctx context.Context, ids ...string) ([]string, error) {
	return c.choose(ctx, "execute", ids)
}

// Rollback plans the reverse of an action that has succeeded, and returns its ID.
func (c *Client) Rollback(ctx context.Context, id string) (string, error) {
	ids, err := c.choose(ctx, "rollback", []string{id})
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// Rehearse asks the gate, the policy and the provider what would become of actions.
func (c *Client) Rehearse(ctx context.Context, ids ...string) (list []Rehearsal, err error) {
	return list, c.post(ctx, "rehearse", Choice{ids}, &list)
}

// Drain takes a node out of every placement, or lets it back.
func (c *Client) Drain(ctx context.Context, node string, drained bool) (d Drain, err error) {
	return d, c.post(ctx, "drain", Drain{Node: node, Drained: drained}, &d)
}

// Own says where an address lives.
func (c *Client) Own(ctx context.Context, o Own) (r Residence, err error) {
	return r, c.post(ctx, "own", o, &r)
}

func (c *Client) choose(ctx context.Context, path string, ids []string) ([]string, error) {
	var done Choice
	err := c.post(ctx, path, Choice{ids}, &done)
	return done.IDs, err
}

func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/"+path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	return c.ask(r, into)
}

func (c *Client) post(ctx context.Context, path string, in, into any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/v1/"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	return c.ask(r, into)
}

func (c *Client) ask(r *http.Request, into any) error {
	resp, err := c.http.Do(r)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent answers at %s: start tasuki-agent, or name its state directory with --state", c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the agent's socket %s is not open to this user: run as the user of the agent", c.socket)
	case err != nil:
		return fmt.Errorf("ask the agent at %s: %w", c.socket, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var f Fault
		if err := json.NewDecoder(resp.Body).Decode(&f); err != nil {
			return fmt.Errorf("the agent at %s answers %s", c.socket, resp.Status)
		}
		return FaultError{f}
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
