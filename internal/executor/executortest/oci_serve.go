package executortest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// OCIThrottled is how OCI asks for patience.
var OCIThrottled = Fault{Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: "Tenancy request rate limit exceeded."}

// ServeHTTP serves the Core API at /20160918/, the metadata service at /opc/v2/ and the Auth
// service at /v1/x509.
func (f *OCI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/opc/"):
		f.metadata(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/v1/x509"):
		f.federate(w, r)
		return
	}
	f.handle(w, r, parseOCI(r))
}

func (f *OCI) carry(r *http.Request, c *Call) (reply, *refusal) {
	out := f.operate(r, c)
	c.Code = out.code()
	return out, nil
}

func (f *OCI) refused(r *refusal) reply { return refuseOCI(r.Status, r.Code, "%s", r.Message) }

// ociReply is an answer of the API.
type ociReply struct {
	status int
	body   any // nil is none
	etag   string
	next   string // opc-next-page
}

func (r ociReply) code() string {
	if e, ok := r.body.(ociError); ok {
		return e.Code
	}
	return ""
}

func (r ociReply) write(w http.ResponseWriter, n int) {
	w.Header().Set("opc-request-id", requestID(n))
	if r.etag != "" {
		w.Header().Set("etag", r.etag)
	}
	if r.next != "" {
		w.Header().Set("opc-next-page", r.next)
	}
	if r.body == nil {
		w.WriteHeader(r.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	if err := json.NewEncoder(w).Encode(r.body); err != nil {
		panic(http.ErrAbortHandler) // the caller has left
	}
}
