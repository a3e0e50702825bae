package reference_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/gateway/reference"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/ui"
	tenants "github.com/weirlog/weir/tenants/app"
)

// document is that of all modules.
func document(t *testing.T) []byte {
	whole := httpapi.OpenAPI{Version: "3.1.0", Info: map[string]string{"title": "Weir", "version": "1"}, Servers: []map[string]string{{"url": "/"}}}
	for _, part := range [][]byte{ingest.OpenAPI(), grouping.OpenAPI(), ledger.OpenAPI(), tenants.OpenAPI()} {
		testenv.Must(t, whole.Add(part))
	}
	text, err := json.Marshal(whole)
	testenv.Must(t, err)
	text, err = reference.WithExamples(text)
	testenv.Must(t, err)
	return text
}

// read reads a document that has no examples.
func read(text string) (*reference.Page, error) {
	with, err := reference.WithExamples([]byte(text))
	if err != nil {
		return nil, err
	}
	return reference.Read(with)
}

// Every operation of the modules is on the page, with who may call it and
// an example of what it takes and answers in JSON.
func TestPage(t *testing.T) {
	text := document(t)
	var whole httpapi.OpenAPI
	testenv.Must(t, json.Unmarshal(text, &whole))
	page, err := reference.Read(text)
	testenv.Must(t, err)
	w := httptest.NewRecorder()
	reference.NewPages().Write(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs", nil), http.StatusOK, "reference", ui.View{Title: "API", Data: page})
	shown := w.Body.String()
	operations := 0
	for _, tag := range page.Tags {
		for _, o := range tag.Operations {
			operations++
			if o.Summary == "" || o.Callers == "" || !strings.Contains(shown, `id="`+o.ID+`"`) {
				t.Errorf("%s %s: %+v", o.Method, o.Path, o)
			}
			contents := o.Bodies
			for _, answer := range o.Answers {
				contents = append(contents, answer.Contents...)
			}
			for _, c := range contents {
				if c.Media == "application/json" && !strings.HasSuffix(o.Path, "_bulk") && !json.Valid([]byte(c.Example)) {
					t.Errorf("%s %s: the example %q", o.Method, o.Path, c.Example)
				}
			}
		}
	}
	described := 0
	for _, path := range whole.Paths {
		described += strings.Count(string(path), `"operationId"`)
	}
	if operations != described || operations < 50 {
		t.Errorf("%d operations on the page, %d described", operations, described)
	}
}

// The example of a body is the same in OpenAPI 3.0, whose schemas have other words.
func TestExamplesStayInOpenAPI30(t *testing.T) {
	text, err := reference.WithExamples([]byte(`{"paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"properties":{
		"type":{"enum":[["a","null"]]},"examples":{"type":"array","items":{"type":["string","null"]}}},"type":"object"}}}}}}}}`))
	testenv.Must(t, err)
	older, err := openapi.Version30(text)
	testenv.Must(t, err)
	const example, nullable = `"example":{"examples":["…"],"type":["a","null"]}`, `"nullable":true`
	if !strings.Contains(string(text), example) || !strings.Contains(string(older), example) || !strings.Contains(string(older), nullable) {
		t.Errorf("%s\n%s", text, older)
	}
}

// Examples follow references, alternatives and types with null, and leave
// out what is deprecated; a schema that refers to itself ends.
func TestExamples(t *testing.T) {
	page, err := read(`{"tags":[{"name":"a"}],"paths":{"/a":{"post":{"operationId":"x","tags":["a"],"security":[{"k":[]},{"mServiceToken":["s"]}],
		"parameters":[{"name":"order","in":"query","schema":{"enum":["desc","asc"],"default":"desc"}},{"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":1000}}],
		"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/T"}},"text/plain":{"example":"one\ntwo"}}},
		"responses":{"204":{"description":"done"}}}}},
		"components":{"schemas":{"T":{"type":"object","required":["n","kind"],"properties":{"at":{"type":["string","null"],"format":"date-time"},"old":{"type":"string","deprecated":true},
		"kind":{"enum":["b","c"]},"n":{"type":"integer"},"list":{"type":"array","items":{"anyOf":[{"type":"boolean"},{"type":"string"}]}},"free":{}}}}}}`)
	testenv.Must(t, err)
	o := page.Tags[0].Operations[0]
	var compact strings.Builder
	testenv.Must(t, json.NewEncoder(&compact).Encode(json.RawMessage(o.Bodies[0].Example)))
	const want = `{"kind":"b","n":1,"at":"2026-01-31T12:00:00Z","free":null,"list":[true]}` + "\n"
	if compact.String() != want || o.Bodies[1].Example != "one\ntwo" || o.Callers != "an API key in the header x-api-key, or a service token that may s" || len(o.Answers) != 1 {
		t.Errorf("%s %+v", compact.String(), o)
	}
	if got := o.Parameters[0].Values + " | " + o.Parameters[1].Values + " | " + o.Bodies[0].Required; got != "desc, asc; default desc | at least 1; at most 1000 | n, kind" {
		t.Error(got)
	}
	loop := `{"tags":[{"name":"a"}],"paths":{"/a":{"get":{"tags":["a"],"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/L"}}}}}}},
		"components":{"schemas":{"L":{"type":"array","items":{"$ref":"#/components/schemas/L"}},"M":{"$ref":"#/components/schemas/M"},"N":{"type":"array","items":true}}}}`
	if _, err := read(loop); err != nil {
		t.Error(err)
	}
	for _, broken := range []string{"{", `{"paths":{"/a":{"get":[]}}}`} {
		if _, err := read(broken); err == nil {
			t.Errorf("%s was read", broken)
		}
	}
}
