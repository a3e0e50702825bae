package apireference

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

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
