package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The lines are the API server's, shortened.
const auditLog = `{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":"patch","user":{"username":"karpenter","groups":["system:authenticated"]},"userAgent":"karpenter/1","objectRef":{"resource":"nodeclaims","name":"a-1","apiGroup":"karpenter.sh","apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-03-01T10:00:00.000001Z","stageTimestamp":"2026-03-01T10:00:00.000002Z"}
{"stage":"ResponseComplete","verb":"delete","user":{"username":"system:serviceaccount:tasuki:controller"},"objectRef":{"resource":"nodeclaims","name":"a-1","apiGroup":"karpenter.sh"},"responseStatus":{"status":"Failure","reason":"Conflict","code":409},"requestReceivedTimestamp":"2026-03-01T10:00:01Z"}
{"stage":"ResponseStarted","verb":"watch","user":{"username":"karpenter"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-03-01T10:00:02Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"karpenter"},"objectRef":{"resource":"events","namespace":"default"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-03-01T10:00:03Z"}
{"stage":"Panic","verb":"create","user":{"username":"karpenter"},"objectRef":{"resource":"events","namespace":"default"},"responseStatus":{"code":500},"requestReceivedTimestamp":"2026-03-01T10:00:04Z"}
{"stage":"ResponseComplete","verb":"crea`

func writeAudit(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuditWritesAreTheCompletedOnesOfOneUser(t *testing.T) {
	path := writeAudit(t, auditLog)
	at := func(s string) time.Time {
		parsed, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	want := map[string][]AuditEvent{
		"karpenter": {
			{
				Time: at("2026-03-01T10:00:00.000001Z"), User: "karpenter", UserAgent: "karpenter/1", Verb: "patch",
				Group: "karpenter.sh", Resource: "nodeclaims", Subresource: "status", Name: "a-1", Code: 200,
			},
			{Time: at("2026-03-01T10:00:03Z"), User: "karpenter", Verb: "create", Resource: "events", Namespace: "default", Code: 201},
		},
		// A refused write counts: the server had to answer it.
		"system:serviceaccount:tasuki:controller": {{
			Time: at("2026-03-01T10:00:01Z"), User: "system:serviceaccount:tasuki:controller", Verb: "delete",
			Group: "karpenter.sh", Resource: "nodeclaims", Name: "a-1", Code: 409,
		}},
		"nobody": nil,
	}
	for user, events := range want {
		got, err := AuditWrites(path, user)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(events, got); diff != "" {
			t.Errorf("writes of %s (-want +got):\n%s", user, diff)
		}
	}
	all, err := AuditWrites(path, "")
	if err != nil || len(all) != 3 {
		t.Errorf("writes of all users: got %d, %v: want 3", len(all), err)
	}
}

func TestABrokenAuditLineIsNamed(t *testing.T) {
	_, err := AuditWrites(writeAudit(t, "\n{nonsense}\n"), "")
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got error %v: want one that names line 2", err)
	}
}
