package executortest

import (
	"net/http"
	"strings"
)

// ServeHTTP serves the API at / and the metadata service at /latest/.
func (f *EC2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/latest/") {
		f.metadata(w, r)
		return
	}
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
		writeXML(w, http.StatusBadRequest, &errorAnswer{Code: "InvalidRequest", Message: "The request received was invalid."})
		return
	}
	f.handle(w, r, parse(r))
}

func (f *EC2) refused(r *refusal) reply {
	return &errorAnswer{Status: r.Status, Code: r.Code, Message: r.Message}
}
