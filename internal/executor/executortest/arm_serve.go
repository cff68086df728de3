package executortest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServeHTTP serves the API, and the metadata service at /metadata/.
func (f *ARM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/metadata/") {
		f.metadata(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut(w)
		return
	}
	f.handle(w, r, f.parse(r, body))
}

// armAnswer is an answer of the API.
type armAnswer struct {
	status  int
	headers map[string]string
	body    any
}

func (a *armAnswer) write(w http.ResponseWriter, _ int) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range a.headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	if err := json.NewEncoder(w).Encode(a.body); err != nil {
		panic(http.ErrAbortHandler) // the caller has left
	}
}

// armRetryAfter is what the fake says in Retry-After, in seconds.
const armRetryAfter = "10"

func (f *ARM) refused(r *refusal) reply {
	a := &armAnswer{status: r.Status, headers: map[string]string{}, body: map[string]any{
		"error": map[string]any{"code": r.Code, "message": r.Message, "details": []any{}},
	}}
	if r.Status == http.StatusTooManyRequests {
		a.headers["Retry-After"] = armRetryAfter
	}
	return a
}

// armPath is the way of a resource, in parts.
var armPath = regexp.MustCompile(`(?i)^/subscriptions/([^/]+)(?:/resourceGroups/([^/]+))?/providers/Microsoft\.Network/(networkInterfaces|virtualNetworks|locations)(?:/([^/]+))?(?:/(subnets|operations)/([^/]+))?$`)

// parse reads a request as ARM would.
func (f *ARM) parse(r *http.Request, body []byte) Call {
	c := Call{ID: r.Header.Get("X-Ms-Correlation-Request-Id"), IfMatch: r.Header.Get("If-Match"), Body: string(body)}
	kind := r.URL.Path
	if m := armPath.FindStringSubmatch(r.URL.Path); m != nil {
		kind = m[3]
		if m[5] != "" {
			kind = m[5]
		}
		if m[3] == "networkInterfaces" {
			c.NIC = f.called(r.URL.Path)
		}
	}
	c.Action = r.Method + " " + kind
	if doc := decodeDocument(body); doc != nil {
		c.Addresses = addresses(doc)
	}
	return c
}

// armVersions are the versions of the API that there are.
var armVersions = []string{"2024-05-01", "2025-05-01"}

// carry does what a call asks for, in the order in which ARM looks at it: who asks, of which
// version, whether that may, and then what.
func (f *ARM) carry(r *http.Request, c *Call) (reply, *refusal) {
	if why := f.unknown(r); why != nil {
		return nil, why
	}
	m := armPath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return nil, refuse(http.StatusNotFound, "InvalidResourceType", "The resource type could not be found for %s.", r.URL.Path)
	}
	switch v := r.URL.Query().Get("api-version"); {
	case v == "":
		return nil, refuse(http.StatusBadRequest, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
	case !slices.Contains(armVersions, v):
		return nil, refuse(http.StatusBadRequest, "NoRegisteredProviderFound", "No registered resource provider found for location 'westeurope' and API version '%s' for type '%s'. The supported api-versions are '%s'.", v, m[3], strings.Join(armVersions, ", "))
	}
	switch kind := r.Method + " " + strings.ToLower(m[3]+m[5]); {
	case kind == "GET networkinterfaces" && m[4] == "":
		return f.listNICs(r.URL.Path)
	case kind == "GET networkinterfaces":
		return f.getNIC(r.URL.Path)
	case kind == "PUT networkinterfaces" && m[4] != "":
		return f.putNIC(c, r.URL.Path, decodeDocument([]byte(c.Body)))
	case kind == "GET virtualnetworkssubnets":
		return f.getSubnet(r.URL.Path, r.URL.Query().Get("$expand"))
	case kind == "GET locationsoperations":
		return f.getOperation(m[6])
	}
	return nil, refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The http method '%s' is not supported for %s.", r.Method, r.URL.Path)
}

// unknown says why a request is not let in.
func (f *ARM) unknown(r *http.Request) *refusal {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return refuse(http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	case token != f.token || token == "":
		return refuse(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	return nil
}

// may says that the host lacks a permission, if it does.
func (f *ARM) may(action, scope string) *refusal {
	if !f.denied[action] {
		return nil
	}
	const who = "The client '00000000-0000-4000-8000-0000000000c1' with object id '00000000-0000-4000-8000-0000000000c1'"
	if strings.HasSuffix(action, "/action") {
		return refuse(http.StatusForbidden, "LinkedAuthorizationFailed", "%s has permission to perform action 'Microsoft.Network/networkInterfaces/write' on scope '%s'; however, it does not have permission to perform action(s) '%s' on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.", who, scope, action, armSubnet)
	}
	return refuse(http.StatusForbidden, "AuthorizationFailed", "%s does not have authorization to perform action '%s' over scope '%s' or the scope is invalid. If access was recently granted, please refresh your credentials.", who, action, scope)
}

// metadata serves the token of the host. It wants a header that no proxy and no form would send.
func (f *ARM) metadata(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	switch {
	case r.URL.Path != "/metadata/identity/oauth2/token":
		w.WriteHeader(http.StatusNotFound)
	case r.Header.Get("Metadata") != "true" || r.Header.Get("X-Forwarded-For") != "" || q.Get("api-version") == "":
		(&armAnswer{status: http.StatusBadRequest, body: map[string]string{"error": "invalid_request", "error_description": "Required metadata header not specified"}}).write(w, 0)
	case f.token == "" || q.Get("resource") != f.tokenFor || q.Get("client_id") != "":
		(&armAnswer{status: http.StatusBadRequest, body: map[string]string{"error": "invalid_request", "error_description": "Identity not found"}}).write(w, 0)
	default:
		expires := time.Now().Add(24 * time.Hour) // an SDK compares it with the clock of the machine
		(&armAnswer{status: http.StatusOK, body: map[string]string{
			"access_token": f.token, "expires_in": "86399", "expires_on": strconv.FormatInt(expires.Unix(), 10),
			"not_before": strconv.FormatInt(time.Now().Unix(), 10), "resource": q.Get("resource"), "token_type": "Bearer",
		}}).write(w, 0)
	}
}

func (f *ARM) operationURL(n int) string {
	return fmt.Sprintf("%s/subscriptions/%s/providers/Microsoft.Network/locations/westeurope/operations/%d?api-version=2025-05-01", f.url, armSubscription, n)
}
