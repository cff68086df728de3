package executortest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// metadata serves what an instance is told about itself. As IMDSv2 does, it wants a session
// token first.
func (f *EC2) metadata(w http.ResponseWriter, r *http.Request) {
	const ttl = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get(ttl) != "" {
		token := fmt.Sprintf("session-%d", len(f.tokens)+1)
		f.tokens[token] = true
		w.Header().Set(ttl, r.Header.Get(ttl))
		io.WriteString(w, token)
		return
	}
	if !f.tokens[r.Header.Get("X-Aws-Ec2-Metadata-Token")] {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	const roles = "/latest/meta-data/iam/security-credentials/"
	switch name, ofRole := strings.CutPrefix(r.URL.Path, roles); {
	case r.URL.Path == "/latest/dynamic/instance-identity/document":
		json.NewEncoder(w).Encode(map[string]string{"region": f.region, "instanceId": "i-00000000000000001"})
	case ofRole && f.role != "" && name == "":
		io.WriteString(w, f.role)
	case ofRole && f.role != "" && name == f.role:
		now := time.Now().UTC() // an SDK compares it with the clock of the machine
		json.NewEncoder(w).Encode(map[string]string{
			"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": now.Format(time.RFC3339),
			"AccessKeyId": f.secret.AccessKeyID, "SecretAccessKey": f.secret.SecretAccessKey, "Token": f.secret.Token,
			"Expiration": now.Add(6 * time.Hour).Format(time.RFC3339),
		})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
