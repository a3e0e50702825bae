package keys

import (
	"cmp"
	"embed"
	"net/url"
	"strings"
	"text/template"
	"time"

	"github.com/weirlog/weir/shared/ui"
)

//go:embed snippets/*.txt
var snippetFiles embed.FS

var snippetTemplates = template.Must(template.ParseFS(snippetFiles, "snippets/*.txt"))

// snippets are the ways to send a first entry: a file, a name, and what it is.
var snippets = [][3]string{
	{"curl", "curl", "A command"},
	{"python", "Python", "A program in Python"},
	{"node", "Node", "A program in JavaScript: hello.mjs"},
	{"go", "Go", "A program in Go: hello.go"},
	{"opentelemetry", "OpenTelemetry", "Settings of a program with an SDK of OpenTelemetry"},
	{"collector", "Collector", "The Collector of OpenTelemetry"},
	{"fluentbit", "Fluent Bit", "An output of Fluent Bit"},
}

// ofPages are those for a key of web pages, which works nowhere else.
var ofPages = [][3]string{{"page", "Web page", "A script in a page of one of the key's origins"}}

// A snippet is what its template is filled with.
type snippet struct {
	Origin, Host, Port string
	Key                string
	CAFile             string // "": the certificate is publicly trusted
	Now                string
}

// firstSteps are examples of sending a first entry with a key: snippets, or
// ofPages.
func firstSteps(ways [][3]string, origin, caFile, key string, now time.Time) ui.Variants {
	of := snippet{Origin: origin, Key: key, CAFile: caFile, Now: now.UTC().Format(time.RFC3339)}
	if address, err := url.Parse(origin); err == nil {
		of.Host, of.Port = address.Hostname(), cmp.Or(address.Port(), "443")
	}
	shown := ui.Variants{Label: "Send a first entry by"}
	for _, s := range ways {
		var text strings.Builder
		if err := snippetTemplates.ExecuteTemplate(&text, s[0]+".txt", of); err != nil {
			panic("BUG: cannot fill a snippet: " + err.Error())
		}
		shown.Of = append(shown.Of, ui.Variant{Name: s[1], Code: ui.Code{ID: s[0], Label: s[2], Text: strings.TrimSpace(text.String()), Copy: "Copy"}})
	}
	return shown
}
