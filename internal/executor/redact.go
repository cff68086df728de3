package executor

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Redact takes secrets out of a text: as they are, as a URL or JSON has them, and in base64,
// alone or with something before and after, as basic authentication has a password. A message
// of a provider may repeat the request that it is about in any of these forms.
func Redact(text string, secrets ...string) string {
	var all []string
	for _, secret := range secrets {
		if secret != "" {
			all = append(all, forms(secret)...)
		}
	}
	// The longest first, as one may be a part of another.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, form := range slices.Compact(all) {
		text = strings.ReplaceAll(text, form, "[redacted]")
	}
	return text
}

// forms are the ways in which a secret may be written.
func forms(secret string) []string {
	all := []string{secret}
	quoted, _ := json.Marshal(secret) // a string always can be
	all = append(all, string(quoted[1:len(quoted)-1]), strings.ReplaceAll(secret, "/", `\/`))
	for offset := range 3 {
		core := within(secret, offset)
		if len(core) < shortest {
			continue
		}
		all = append(all, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
	}
	for _, form := range slices.Clone(all) {
		escaped := url.QueryEscape(form)
		for _, e := range []string{escaped, strings.ReplaceAll(escaped, "+", "%20"), url.PathEscape(form)} {
			all = append(all, e, escape.ReplaceAllStringFunc(e, strings.ToLower))
		}
	}
	return all
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// shortest is the length from which base64 is taken for that of a secret: less is a word of
// another text too often.
const shortest = 4

// within is the part of a base64 text that a secret alone decides, when so many bytes, or three,
// six, ... more of them, come before it.
func within(secret string, offset int) string {
	text := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), secret...))
	return text[(offset*8+5)/6 : (offset+len(secret))*8/6]
}
