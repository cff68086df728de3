package executor

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// Whatever a message has made of a secret, none of it is left.
func TestI12NoFormOfASecretIsLeft(t *testing.T) {
	const secret = `p+l/a?n t&e"d~s=ecret`
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	std, web := base64.StdEncoding.EncodeToString, base64.URLEncoding.EncodeToString
	for name, form := range map[string]string{
		"as it is":            secret,
		"JSON":                string(quoted),
		"a query":             url.QueryEscape(secret),
		"a query of AWS":      strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
		"lower case escapes":  strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3F", "%3f", "%3D", "%3d").Replace(url.QueryEscape(secret)),
		"a path":              url.PathEscape(secret),
		"base64":              std([]byte(secret)),
		"base64 for URLs":     web([]byte(secret)),
		"unpadded":            base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"base64 in a query":   url.QueryEscape(std([]byte(secret))),
		"after a user":        std([]byte("u:" + secret)),
		"after another user":  std([]byte("ur:" + secret)),
		"after a third":       web([]byte("usr:" + secret)),
		"after one in a path": url.PathEscape(std([]byte("usr:" + secret))),
	} {
		got := Redact("before "+form+" after", "", secret)
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %q", name, got)
		}
		// Of base64, the signs at the borders have bits of something else in them.
		left := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(got, "before "), " after"), "[redacted]", "")
		if most := map[bool]int{false: 4, true: 10}[strings.HasPrefix(name, "after")]; len(left) > most {
			t.Errorf("%s: %q is left of %q", name, left, form)
		}
	}
	if got := Redact("10.0.0.1 is free", "abc", "", "x"); got != "10.0.0.1 is free" {
		t.Errorf("a text without a secret becomes %q", got)
	}
	if got := Redact("token and token-long", "token", "token-long"); got != "[redacted] and [redacted]" {
		t.Errorf("a secret that contains another: %q", got)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("a", "s3cr3t/+", "b")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if len(secret) < 6 {
			return
		}
		raw := base64.StdEncoding.EncodeToString([]byte(before + secret + after))
		at := len(before)
		core := raw[(at*8+5)/6 : (at+len(secret))*8/6]
		if got := Redact(raw, secret); strings.Contains(got, core) && !strings.Contains("[redacted]", core) {
			t.Errorf("%q has %q of %q", got, core, secret)
		}
	})
}
