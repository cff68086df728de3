package lab

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func parsePair(t *testing.T, pair keyPair) *x509.Certificate {
	t.Helper()
	parsed, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	return parsed.Leaf
}

func TestCertificatesAreGoodForTheirUseOnly(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.pem())
	serving, err := ca.serving()
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.client("karpenter", "platform")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		if _, err := parsePair(t, serving).Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("the serving certificate does not serve %s: %v", host, err)
		}
	}
	leaf := parsePair(t, client)
	if leaf.Subject.CommonName != "karpenter" || !cmp.Equal(leaf.Subject.Organization, []string{"platform"}) {
		t.Errorf("the client certificate names %v: want karpenter in group platform", leaf.Subject)
	}
	clientAuth := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: clientAuth}); err != nil {
		t.Errorf("the client certificate does not authenticate a client: %v", err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("a client certificate can serve")
	}
	other, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	foreign := x509.NewCertPool()
	foreign.AppendCertsFromPEM(other.pem())
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: foreign, KeyUsages: clientAuth}); err == nil {
		t.Error("one lab's client certificate is good in another lab")
	}
}

func TestEachComponentHasAKubeconfigOfItsOwn(t *testing.T) {
	d := layout(t.TempDir())
	if err := writeIdentities(d, ports{APIServer: 20001}); err != nil {
		t.Fatal(err)
	}
	users := make(map[string]bool)
	for _, id := range identities {
		config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig(id.who))
		if err != nil {
			t.Fatalf("kubeconfig of %s: %v", id.who, err)
		}
		if config.Host != "https://127.0.0.1:20001" {
			t.Errorf("kubeconfig of %s leads to %s", id.who, config.Host)
		}
		user := parsePair(t, keyPair{config.CertData, config.KeyData}).Subject.CommonName
		if user != id.user || users[user] {
			t.Errorf("kubeconfig of %s acts as %s: want %s, and nobody else as it", id.who, user, id.user)
		}
		users[user] = true
	}
}
