package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert, a.key = a.sign(t, a.file, "", &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes a certificate and its key for a name, and returns the files.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.sign(t, cert, key, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return cert, key
}

func (a *authority) sign(t *testing.T, certFile, keyFile string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	must(t, err)
	write(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	if keyFile != "" {
		b, err := x509.MarshalECPrivateKey(key)
		must(t, err)
		write(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b}))
	}
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert, key
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	must(t, os.WriteFile(path, b, 0o600))
}

// everything has a store do one thing of each kind.
func everything(t *testing.T, s *Store) {
	t.Helper()
	moves(t, s, key(1), "a")
	at, err := s.Changes(t.Context(), claims.Revision{})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waits := make(chan error, 1)
	go func() { waits <- s.Wait(ctx, at.Revision) }()
	for range 2 {
		_, err = s.Renew(t.Context(), "a", time.Minute)
		must(t, err)
	}
	must(t, s.Drain(t.Context(), "b", true))
	must(t, s.Drain(t.Context(), "b", false))
	_, err = s.Own(t.Context(), capture.Home{Pool: "blue", Addr: key(1).Address}, capture.Location{Site: "tokyo"})
	must(t, err)
	must(t, <-waits)
	must(t, s.Release(t.Context(), "a"))
}

// A cluster that speaks TLS and asks for certificates lets in who has one, also when it was
// renewed on disk since; everybody else is told in time what is wrong.
func TestACertificateLetsIn(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	cert, key := ca.issue(t, "member")
	c := newCluster(t, 3, append([]string{"--cert-file=" + cert, "--key-file=" + key, "--client-cert-auth", "--trusted-ca-file=" + ca.file}, unsynced...)...)
	o := hasty(c.Members...)
	o.CA = ca.file
	o.Cert, o.Key = ca.issue(t, "agent")
	s := opened(t, o)
	everything(t, s)

	foreign := o
	foreign.CA = stranger.file
	nameless := o
	nameless.Cert, nameless.Key = "", ""
	forged := o
	forged.Cert, forged.Key = stranger.issue(t, "agent")
	// A certificate that the members refuse may show as a connection that they close.
	for want, o := range map[string]Options{"unknown authority": foreign, "etcd at https://": nameless, "read /tasuki/claims/": forged} {
		_, err := opened(t, o).Claim(t.Context(), capture.Key{Pool: "blue"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}

	// The certificate on disk is another now, which nobody signed: the next connection shows it.
	write(t, o.Cert, contents(t, forged.Cert))
	write(t, o.Key, contents(t, forged.Key))
	cutOff(false, true, c.Members...)
	cutOff(false, false, c.Members...)
	eventually(t, "the certificate on disk being used", func() bool {
		_, err := s.Claim(t.Context(), capture.Key{Pool: "blue"})
		return err != nil && strings.Contains(err.Error(), "tls: ")
	})
	good, goodKey := ca.issue(t, "agent")
	write(t, o.Cert, contents(t, good))
	write(t, o.Key, contents(t, goodKey))
	everything(t, s)
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

// A cluster that asks for a password lets in who has it in a file, also after the token has
// run out or the password was changed; the password is in no error.
func TestAPasswordLetsIn(t *testing.T) {
	t.Parallel()
	c := started(t, newCluster(t, 1, append([]string{"--auth-token-ttl=1", "--bcrypt-cost=4"}, unsynced...)...))
	ctx, a := t.Context(), c.Admin
	for user, password := range map[string]string{"root": "toor", "agent": "open sesame", "guest": "open sesame"} {
		_, err := a.RoleAdd(ctx, user)
		must(t, err)
		_, err = a.UserAdd(ctx, user, password)
		must(t, err)
		_, err = a.UserGrantRole(ctx, user, user)
		must(t, err)
	}
	_, err := a.RoleGrantPermission(ctx, "agent", "/tasuki/", clientv3.GetPrefixRangeEnd("/tasuki/"), clientv3.PermissionType(clientv3.PermReadWrite))
	must(t, err)
	_, err = a.AuthEnable(ctx)
	must(t, err)

	o := hasty(c.Members...)
	o.User, o.PasswordFile = "agent", filepath.Join(t.TempDir(), "password")
	write(t, o.PasswordFile, []byte("open barley\n"))
	s := opened(t, o)
	_, err = s.Claim(ctx, key(1))
	if err == nil || !strings.Contains(err.Error(), `check the user "agent" and the password in the file "`+o.PasswordFile) || strings.Contains(err.Error(), "barley") {
		t.Errorf("a wrong password: %v", err)
	}
	write(t, o.PasswordFile, []byte("open sesame\n"))
	everything(t, s)
	time.Sleep(2500 * time.Millisecond) // the token has run out
	everything(t, s)

	guest := o
	guest.User = "guest"
	_, err = opened(t, guest).Claim(ctx, key(1))
	if err == nil || !strings.Contains(err.Error(), "let the user guest read and write every key under /tasuki/") {
		t.Errorf("a user without rights: %v", err)
	}
	nobody := o
	nobody.User, nobody.PasswordFile = "", ""
	_, err = opened(t, nobody).Claim(ctx, key(1))
	if err == nil || !strings.Contains(err.Error(), "check the user") {
		t.Errorf("no user at all: %v", err)
	}
}

// What cannot work is refused before anything is connected.
func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	write(t, empty, []byte("\n"))
	tls, plain := []string{"https://a:2379"}, []string{"http://a:2379"}
	for want, o := range map[string]Options{
		"no endpoints":                  {},
		"write it as https://HOST:PORT": {Endpoints: []string{"a:2379"}},
		"https://a\": write it as":      {Endpoints: []string{"https://a"}},
		"is not https like the first":   {Endpoints: append(tls, plain...)},
		"would not be used":             {Endpoints: plain, CA: empty},
		"would be readable":             {Endpoints: plain, User: "u", PasswordFile: empty},
		"give both or none":             {Endpoints: tls, Cert: "x"},
		`user "u" and password file ""`: {Endpoints: tls, User: "u"},
		"no PEM certificate":            {Endpoints: tls, CA: empty},
		"no such file":                  {Endpoints: tls, CA: dir + "/none"},
		"certificate file":              {Endpoints: tls, Cert: empty, Key: empty},
		"password file " + empty:        {Endpoints: tls, User: "u", PasswordFile: empty},
		"a timeout of -1s is none":      {Endpoints: tls, Timeout: -time.Second},
	} {
		if s, err := Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v; want %q", o, s, err, want)
		}
	}
}
