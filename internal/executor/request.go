package executor

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/json"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// maxRequest bounds a request in bytes. A real one takes less than one KiB.
const maxRequest = 64 << 10

// ReadRequest reads the one Request that there is, to the end of r. A field that nobody
// knows is refused rather than ignored: what it asks for might have been a condition.
func ReadRequest(r io.Reader) (Request, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxRequest+1))
	if err != nil {
		return Request{}, fmt.Errorf("read the request: %w", err)
	}
	if len(data) > maxRequest {
		return Request{}, fmt.Errorf("the request is longer than %d bytes", maxRequest)
	}
	var q Request
	if err := strict(data, &q); err != nil {
		return Request{}, fmt.Errorf("the request is not one JSON object of protocol version %d: %w", Version, err)
	}
	return q, q.Validate()
}

// strict decodes exactly one JSON value whose fields are all known, spelled as they are, and
// there once.
func strict(data []byte, v any) error {
	unknown, err := json.UnmarshalStrict(data, v)
	return errors.Join(append(unknown, err)...)
}

// Validate says what of a request no executor could serve.
func (q *Request) Validate() error {
	addressed := q.Verb == capture.Assign || q.Verb == capture.Unassign
	switch {
	case q.Version != Version:
		return fmt.Errorf("version %d: this executor speaks version %d; agent and executor have to be of one release", q.Version, Version)
	case !Reads(q.Verb) && !slices.Contains(capture.Verbs(), q.Verb):
		return fmt.Errorf("verb %q: it is none of %v, %s and %s", q.Verb, capture.Verbs(), Describe, Locate)
	case q.ID == "" && !Reads(q.Verb):
		return fmt.Errorf("id: a change (%s) needs its idempotencyKey", q.Verb)
	case !plain(q.ID):
		return fmt.Errorf("id %q: it is longer than %d bytes, or has a character that does not print", q.ID, maxName)
	case q.NIC == "":
		return errors.New("nic: the request names none")
	case !plain(q.NIC):
		return fmt.Errorf("nic %q: it is longer than %d bytes, or has a character that does not print", q.NIC, maxName)
	case q.Profile.Provider == "":
		return errors.New("profile.provider: the request names none")
	case addressed && !q.Address.IsValid():
		return fmt.Errorf("address: %s needs one", q.Verb)
	case !addressed && q.Address.IsValid():
		return fmt.Errorf("address %s: %s takes none", q.Address, q.Verb)
	case odd(q.Address):
		return fmt.Errorf("address %s: no provider assigns an address with a zone, or an IPv4 address written as IPv6", q.Address)
	case (q.Verb == Locate) != (len(q.Addresses) > 0) || len(q.Addresses) > MaxLocated:
		return fmt.Errorf("addresses: %s takes %d; %s needs 1 to %d, and no other verb takes any", q.Verb, len(q.Addresses), Locate, MaxLocated)
	case slices.ContainsFunc(q.Addresses, func(a netip.Addr) bool { return !a.IsValid() || odd(a) }):
		return fmt.Errorf("addresses %v: one is none, has a zone, or is an IPv4 address written as IPv6", q.Addresses)
	case q.DryRun && Reads(q.Verb):
		return fmt.Errorf("dryRun: %s changes nothing", q.Verb)
	case q.Silent && (q.Verb != capture.Assign || q.Profile.Provider != capture.Linux):
		return fmt.Errorf("silent: only an assign of provider %s announces anything", capture.Linux)
	case q.Reassign && q.Verb != capture.Assign:
		return fmt.Errorf("reassign: %s takes nothing from another NIC", q.Verb)
	}
	return nil
}

func odd(a netip.Addr) bool { return a.Zone() != "" || a.Is4In6() }

// maxName bounds an ID and the name of a NIC, in bytes. An Azure NIC and an OCI VNIC have
// long ones.
const maxName = 1024

func plain(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}
