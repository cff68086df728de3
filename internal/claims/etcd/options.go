package etcd

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say which cluster holds the claims, and how to be let in. Secrets are in files, and
// are read whenever they are needed.
type Options struct {
	Endpoints []string // URLs of the members' client listeners, all http or all https

	CA   string // PEM file of who signs the members' certificates, the system's by default
	Cert string // PEM file of this host's own certificate, when the cluster asks for one
	Key  string // and of its key

	User         string // of etcd's own authentication
	PasswordFile string

	Prefix  string        // of every key, /tasuki/ by default
	Timeout time.Duration // for a whole call, 5 s by default

	// Agent is who renews the lease of a node. It survives a restart, so that an agent that is
	// started again goes on with its lease, and no other agent does.
	Agent string
}

func (o Options) check() (Options, error) {
	o.Timeout, o.Prefix = cmp.Or(o.Timeout, 5*time.Second), cmp.Or(o.Prefix, "/tasuki/")
	switch {
	case o.Timeout < 0:
		return o, fmt.Errorf("etcd: a timeout of %s is none: give one above zero", o.Timeout)
	case len(o.Endpoints) == 0:
		return o, errors.New("etcd: no endpoints: give the client URL of every member")
	case (o.Cert == "") != (o.Key == ""):
		return o, fmt.Errorf("etcd: certificate file %q and key file %q: give both or none", o.Cert, o.Key)
	case (o.User == "") != (o.PasswordFile == ""):
		return o, fmt.Errorf("etcd: user %q and password file %q: give both or none", o.User, o.PasswordFile)
	}
	if !strings.HasSuffix(o.Prefix, "/") {
		o.Prefix += "/"
	}
	first := ""
	for _, e := range o.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
			return o, fmt.Errorf("etcd: endpoint %q: write it as https://HOST:PORT", e)
		}
		if first = cmp.Or(first, u.Scheme); u.Scheme != first {
			return o, fmt.Errorf("etcd: endpoint %q is not %s like the first one: one client speaks one of both", e, first)
		}
		if u.Scheme == "https" {
			continue
		}
		if o.CA+o.Cert != "" {
			return o, fmt.Errorf("etcd: endpoint %q is not https: the certificate files would not be used", e)
		}
		if o.User != "" && !loopback(u.Hostname()) {
			return o, fmt.Errorf("etcd: endpoint %q is not https: the password of %s would be readable on the network", e, o.User)
		}
	}
	if _, _, err := o.secrets(); err != nil {
		return o, fmt.Errorf("etcd: %w", err)
	}
	return o, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// secrets reads what lets a client in. The certificate is read again for every connection, so
// that one that is renewed on disk is taken into use.
func (o *Options) secrets() (*tls.Config, string, error) {
	var password string
	if o.PasswordFile != "" {
		b, err := os.ReadFile(o.PasswordFile)
		if err == nil && len(strings.TrimSpace(string(b))) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, "", fmt.Errorf("password file %s of user %s: %w", o.PasswordFile, o.User, err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		b, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, "", fmt.Errorf("CA file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, "", fmt.Errorf("CA file %s has no PEM certificate in it", o.CA)
		}
	}
	if o.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
			if err != nil {
				return nil, fmt.Errorf("certificate file %s with key file %s: %w", o.Cert, o.Key, err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, "", err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return c, password, nil
}
