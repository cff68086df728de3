package agent

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tasuki-io/tasuki/internal/claims/etcd"
)

// StoreConfig is a ClaimsStore: where epochs and leases are kept. Its zero value is the file
// that the agents of one host share.
type StoreConfig struct {
	Etcd *etcd.Options // a cluster that the agents of all pools share; nil is none
}

const kindStore = "ClaimsStore"

// configPrefix is what keys may begin with.
var configPrefix = form{regexp.MustCompile(`^/([A-Za-z0-9._/-]*/)?$`), 202}

// store reads a ClaimsStore.
func (o *configObject) store() (s StoreConfig) {
	var kind, cluster *yaml.Node
	if !o.need(o.at, "spec", o.spec) || !o.fields(o.spec, "spec", configField{"type", &kind}, configField{"etcd", &cluster}) || !o.need(o.spec, "type", kind) {
		return s
	}
	switch oneOfWords(o, kind, "type", "sqlite", "etcd") {
	case "sqlite":
		if !absentNode(cluster) {
			o.report(cluster, "type sqlite has no etcd: take it out, or write type etcd")
		}
	case "etcd":
		if o.need(o.spec, "etcd", cluster) {
			s.Etcd = o.etcd(cluster)
		}
	}
	return s
}

func (o *configObject) etcd(n *yaml.Node) *etcd.Options {
	var endpoints, prefix, ca, cert, key, user, password, timeout *yaml.Node
	if !o.fields(n, "etcd", configField{"endpoints", &endpoints}, configField{"prefix", &prefix}, configField{"caFile", &ca},
		configField{"certFile", &cert}, configField{"keyFile", &key}, configField{"username", &user}, configField{"passwordFile", &password},
		configField{"timeout", &timeout}) {
		return nil
	}
	e := &etcd.Options{
		Prefix: o.text(prefix, "prefix"), CA: o.filePath(ca, "caFile"), Cert: o.filePath(cert, "certFile"), Key: o.filePath(key, "keyFile"),
		User: o.text(user, "username"), PasswordFile: o.filePath(password, "passwordFile"),
		Timeout: o.duration(timeout, "timeout", 5*time.Second, 100*time.Millisecond, time.Minute),
	}
	if e.Prefix == "" {
		e.Prefix = "/tasuki/"
	}
	if !configPrefix.fits(e.Prefix) {
		o.report(prefix, "prefix %s is not one of keys: write one such as /tasuki/, which begins and ends with /", quoteValue(e.Prefix))
	}
	if o.need(n, "endpoints", endpoints) {
		for _, node := range o.list(endpoints, "endpoints") {
			e.Endpoints = append(e.Endpoints, o.storeMember(node, e))
		}
		if len(e.Endpoints) == 0 {
			o.report(endpoints, "endpoints is empty: write those of all members, such as https://etcd-1:2379")
		}
	}
	if (e.Cert == "") != (e.Key == "") {
		o.report(n, "certFile and keyFile belong together: write both or neither")
	}
	if (e.User == "") != (e.PasswordFile == "") {
		o.report(n, "username and passwordFile belong together: write both or neither")
	}
	return e
}

// filePath reads the path of a file; a relative one would depend on where the agent was started.
func (o *configObject) filePath(n *yaml.Node, field string) string {
	path := o.text(n, field)
	if path != "" && !filepath.IsAbs(path) {
		o.report(n, "%s %s is relative: write the whole path", field, quoteValue(path))
	}
	return path
}

// storeMember reads the endpoint of a member of the cluster.
func (o *configObject) storeMember(n *yaml.Node, e *etcd.Options) string {
	text := o.text(n, "endpoint")
	u, err := url.Parse(text)
	switch {
	case err == nil && u.User != nil:
		o.report(n, "endpoint has user information in it: use username and passwordFile")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "":
		o.report(n, "endpoint is not the URL of a member: write one such as https://etcd-1:2379, with a port and nothing after it")
	case u.Scheme == "http" && e.PasswordFile != "" && !loopback(u.Hostname()):
		o.report(n, "endpoint %s would carry the password in the clear: use https", quoteValue(text))
	}
	return text
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
