package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"html/template"
	"strings"
)

// pack is text under gzip in base64, for what a page carries and does not show. Base64 is safe
// within a script element.
func pack(text string) template.HTML {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write([]byte(text)) // a buffer takes all there is
	_ = w.Close()
	return template.HTML(base64.StdEncoding.EncodeToString(out.Bytes()))
}

// pages is a list of which the page shows one part at a time. The others are packed, markup and
// all, with a NUL between them, and the script of the page swaps them in.
type pages struct {
	ID, Of string // what it is a list of, for people
	First  template.HTML
	Packed template.HTML // empty if the first is all there is
	Shown  int           // in the first
	Each   int           // in any but the last
	Total  int
}

// paged renders items by a template, so many at a time.
func paged[T any](id, of, with string, items []T, each int) (pages, error) {
	p := pages{ID: id, Of: of, Shown: min(each, len(items)), Each: each, Total: len(items)}
	var parts []string
	for start := 0; start < len(items); start += each {
		var out strings.Builder
		if err := html.ExecuteTemplate(&out, with, items[start:min(start+each, len(items))]); err != nil {
			return pages{}, err
		}
		parts = append(parts, out.String())
	}
	if len(parts) > 0 {
		p.First = template.HTML(parts[0])
	}
	if len(parts) > 1 {
		p.Packed = pack(strings.Join(parts, "\x00"))
	}
	return p, nil
}
