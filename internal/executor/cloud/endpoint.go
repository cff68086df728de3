package cloud

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// SafeEndpoint says why requests, and the tokens in them, are not to be sent to an endpoint. None
// at all ("") is safe.
func SafeEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("the endpoint is no URL")
	case u.User != nil:
		return errors.New("the endpoint holds a user: a profile holds no credentials")
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("endpoint %s: write https:// and the name of a host", endpoint)
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsLoopback() {
		return nil
	}
	return fmt.Errorf("endpoint %s: write https://, as a token travels with every request; plain http is for a loopback address", endpoint)
}
