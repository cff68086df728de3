package executortest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const ociTenancy = "ocid1.tenancy.oc1..fake"

// ociSession is what a security token stands for: the key that requests are signed with.
type ociSession struct{ key *rsa.PublicKey }

// ociInstance is what an OCI instance has from its metadata service: a certificate of itself with
// its key, and the one that it was signed by.
type ociInstance struct {
	leaf                    *x509.Certificate
	cert, key, intermediate []byte // PEM
}

// theOCIInstance makes one instance in a run of the tests, as its keys take their time.
var theOCIInstance = sync.OnceValue(func() ociInstance {
	now := time.Now() // an SDK compares it with the clock of the machine
	template := func(names ...string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
			Subject: pkix.Name{CommonName: names[0], OrganizationalUnit: names[1:]}}
	}
	sign := func(of, by *x509.Certificate, key *rsa.PublicKey, with *rsa.PrivateKey) (*x509.Certificate, []byte) {
		der, err := x509.CreateCertificate(rand.Reader, of, by, key, with)
		if err != nil {
			panic(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			panic(err)
		}
		return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	signer, key := ociKey(), ociKey()
	ca := template("fake intermediate")
	ca.IsCA, ca.BasicConstraintsValid = true, true
	issuer, intermediate := sign(ca, ca, &signer.PublicKey, signer)
	leaf, cert := sign(template("ocid1.instance.oc1.eu-frankfurt-1.fake", "opc-certtype:instance", "opc-tenant:"+ociTenancy), issuer, &key.PublicKey, signer)
	return ociInstance{leaf, cert, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), intermediate}
})

func ociKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// metadata serves what an instance is told about itself. Version 2 wants a header that no
// browser sends.
func (f *OCI) metadata(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	ill := f.ill["metadata"]
	f.mu.Unlock()
	self := theOCIInstance()
	answers := map[string]string{
		"/opc/v2/instance/region":           f.region,
		"/opc/v2/identity/cert.pem":         string(self.cert),
		"/opc/v2/identity/key.pem":          string(self.key),
		"/opc/v2/identity/intermediate.pem": string(self.intermediate),
	}
	switch out, ok := answers[r.URL.Path]; {
	case ill != 0:
		w.WriteHeader(ill)
	case !ok || r.Header.Get("Authorization") != "Bearer Oracle":
		w.WriteHeader(http.StatusNotFound)
	default:
		io.WriteString(w, out)
	}
}

// federate gives an instance that proves itself a security token for the key that it names.
func (f *OCI) federate(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ill["auth"] != 0 {
		refuseOCI(f.ill["auth"], "NotAuthenticated", "The Auth service is as the test has it.").write(w, 0)
		return
	}
	self := theOCIInstance()
	var in struct{ Certificate, PublicKey string }
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	id, why := verifyOCI(r, func(id string) *rsa.PublicKey {
		if print := fmt.Sprintf("% x", sha256.Sum256(self.leaf.Raw)); id != ociTenancy+"/fed-x509-sha256/"+strings.ReplaceAll(print, " ", ":") {
			return nil
		}
		return self.leaf.PublicKey.(*rsa.PublicKey)
	}, "date", "(request-target)", "content-length", "content-type", "x-content-sha256")
	if err := json.Unmarshal(body, &in); why == "" && err != nil {
		why = err.Error()
	}
	if cert, _ := base64.StdEncoding.DecodeString(in.Certificate); why == "" && !bytes.Equal(cert, self.leaf.Raw) {
		why = "the certificate is not that of " + id
	}
	der, _ := base64.StdEncoding.DecodeString(in.PublicKey)
	parsed, err := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*rsa.PublicKey)
	if why != "" || err != nil || !ok {
		refuseOCI(http.StatusUnauthorized, "NotAuthenticated", "The required information to complete authentication was not provided or was incorrect. (%s)", why).write(w, 0)
		return
	}
	token := f.token()
	f.tokens[token] = ociSession{key}
	ociReply{status: http.StatusOK, body: map[string]string{"token": token}}.write(w, 0)
}

// token makes a security token, which is a JWT.
func (f *OCI) token() string {
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return strings.Join([]string{
		part(map[string]string{"alg": "RS256", "kid": "fake"}),
		part(map[string]any{"sub": "ocid1.instance.oc1.eu-frankfurt-1.fake", "opc-tenant": ociTenancy, "jti": strconv.Itoa(f.number()), "exp": time.Now().Add(20 * time.Minute).Unix()}),
		"c2lnbmF0dXJl",
	}, ".")
}

// Tokens lists the security tokens that were given out.
func (f *OCI) Tokens() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.tokens {
		all = append(all, t)
	}
	return all
}

// Revoke has no security token be good any more.
func (f *OCI) Revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.tokens)
}

// authenticate says why a request would not be let in, or nothing.
func (f *OCI) authenticate(r *http.Request) (why string) {
	headers := []string{"date", "(request-target)", "host"}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		headers = append(headers, "content-length", "content-type", "x-content-sha256")
	}
	_, why = verifyOCI(r, func(id string) *rsa.PublicKey {
		token, _ := strings.CutPrefix(id, "ST$")
		return f.tokens[token].key
	}, headers...)
	return why
}

var ociAuthorization = regexp.MustCompile(`^Signature version="1",headers="([^"]+)",keyId="([^"]+)",algorithm="rsa-sha256",signature="([^"]+)"$`)

// verifyOCI checks the signature of a request, which has to cover some headers at least, and says
// what is wrong with it.
func verifyOCI(r *http.Request, keyOf func(id string) *rsa.PublicKey, headers ...string) (id, why string) {
	m := ociAuthorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return "", "it is not signed"
	}
	covered, id := strings.Fields(m[1]), m[2]
	for _, h := range headers {
		if !strings.Contains(" "+m[1]+" ", " "+h+" ") {
			return id, "the signature does not cover " + h
		}
	}
	key := keyOf(id)
	if key == nil {
		return id, "nobody knows the key"
	}
	date, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil || time.Since(date).Abs() > 5*time.Minute {
		return id, "the date is off"
	}
	lines := mapped(covered, func(h string) string {
		switch h {
		case "(request-target)":
			return h + ": " + strings.ToLower(r.Method) + " " + r.URL.RequestURI()
		case "host":
			return h + ": " + r.Host
		case "content-length":
			return h + ": " + strconv.FormatInt(r.ContentLength, 10)
		}
		return h + ": " + r.Header.Get(h)
	})
	hash := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	signature, err := base64.StdEncoding.DecodeString(m[3])
	if err != nil || rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], signature) != nil {
		return id, "the signature is wrong"
	}
	body, _ := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	if strings.Contains(m[1], "x-content-sha256") && r.Header.Get("X-Content-Sha256") != base64.StdEncoding.EncodeToString(sum[:]) {
		return id, "the body is not the one that was signed"
	}
	return id, ""
}
