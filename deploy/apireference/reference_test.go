package apireference

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/testenv"
)

// Operations of all modules are found, with what a caller needs for each.
func TestOperations(t *testing.T) {
	operations, err := Operations()
	testenv.Must(t, err)
	for _, module := range modules {
		if !slices.ContainsFunc(operations, func(o Operation) bool { return o.Module == module.name }) {
			t.Errorf("%s has no operation", module.name)
		}
	}
	for _, o := range operations {
		if o.Summary == "" || o.answers() == "" {
			t.Errorf("%s %s: summary %q, answers %q", o.Method, o.Path, o.Summary, o.answers())
		}
	}
}

// All parts together are a document of OpenAPI 3.0 that a strict reader of
// that version accepts.
func TestVersion30(t *testing.T) {
	var whole httpapi.OpenAPI
	whole.Version, whole.Info = "3.1.0", map[string]string{"title": "Weir", "version": "1"}
	for _, module := range modules {
		testenv.Must(t, whole.Add(module.openAPI()))
	}
	text, err := json.Marshal(whole)
	testenv.Must(t, err)
	older, err := openapi.Version30(text)
	testenv.Must(t, err)
	document, err := openapi3.NewLoader().LoadFromData(older)
	testenv.Must(t, err)
	testenv.Must(t, document.Validate(t.Context()))
	for _, unknown := range []string{`"null"`, `"const"`} {
		if strings.Contains(string(older), unknown) {
			t.Errorf("the document has %s, which OpenAPI 3.0 has not", unknown)
		}
	}
	group := document.Components.Schemas["GroupingErrorGroup"]
	if group == nil || !group.Value.Properties["first_release"].Value.Nullable || !group.Value.Properties["first_release"].Value.Type.Is("string") {
		t.Errorf("the first release of an error group is %+v", group)
	}
}

// A page says who may call an operation, with what, and what it answers.
func TestWrite(t *testing.T) {
	var page strings.Builder
	err := Write(&page, []Operation{{
		Module: "ledger", Method: "GET", Path: "/v1/things/{thing}", Summary: "A thing | its parts",
		Security:   []map[string][]string{{"ledgerServiceToken": {"billing:read"}}, {"ingestAPIKey": nil}},
		Parameters: []Parameter{{Name: "at", In: "query", Description: "When.", Required: true}},
		Responses:  map[string]json.RawMessage{"200": nil, "400": nil, "404": nil},
	}})
	testenv.Must(t, err)
	for _, want := range []string{
		"\n## ledger\n", "\n### `GET /v1/things/{thing}`\nA thing \\| its parts.\n",
		"By a service token with `billing:read`, or an API key (`x-api-key`). Answers 200, 404.\n", "| `at` | query, required | When |\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &page)
		}
	}
}
