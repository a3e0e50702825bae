package apireference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	tenants "github.com/weirlog/weir/tenants/app"
)

const introduction = "# API reference\n\n" +
	"Every operation of the API, made from the modules' OpenAPI parts by `make docs`. The whole document, with the shapes of bodies and answers, is\n" +
	"`GET /v1/openapi.json` of the gateway or of a module, and `GET /v1/openapi-3.0.json` of the gateway for generators that can't\n" +
	"read OpenAPI 3.1. Each operation may also answer 400, 401, 403, 429 and 500, as `application/problem+json`\n" +
	"with a [code](errors.md).\n"

// everywhere are the statuses that the introduction names.
var everywhere = []string{"400", "401", "403", "429", "500"}

// Write writes the operations as a page of Markdown, a section for each module.
func Write(w io.Writer, operations []Operation) error {
	var page strings.Builder
	page.WriteString(introduction)
	module := ""
	for _, operation := range operations {
		if operation.Module != module {
			module = operation.Module
			fmt.Fprintf(&page, "\n## %s\n", module)
		}
		operation.write(&page)
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func (o Operation) write(page *strings.Builder) {
	fmt.Fprintf(page, "\n### `%s %s`\n%s.\n\n", o.Method, o.Path, text(o.Summary))
	fmt.Fprintf(page, "By %s. Answers %s.\n", o.credentials(), o.answers())
	if len(o.Parameters) == 0 {
		return
	}
	page.WriteString("\n| Parameter | In | What it is |\n|---|---|---|\n")
	for _, p := range o.Parameters {
		required := ""
		if p.Required && p.In != "path" {
			required = ", required"
		}
		fmt.Fprintf(page, "| `%s` | %s%s | %s |\n", p.Name, p.In, required, text(p.Description))
	}
}

// credentials names who may call an operation.
func (o Operation) credentials() string {
	var ways []string
	for _, way := range o.Security {
		for _, scheme := range slices.Sorted(maps.Keys(way)) {
			ways = append(ways, credential(scheme, way[scheme]))
		}
	}
	if len(ways) == 0 {
		return "anybody"
	}
	return strings.Join(ways, ", or ")
}

func credential(scheme string, scopes []string) string {
	switch {
	case !strings.HasSuffix(scheme, "ServiceToken"):
		return "an API key (`x-api-key`)"
	case len(scopes) == 0:
		return "a service token"
	}
	return "a service token with `" + strings.Join(scopes, "`, `") + "`"
}

// answers returns the statuses that not every operation has.
func (o Operation) answers() string {
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(o.Responses)), func(status string) bool { return slices.Contains(everywhere, status) })
	return strings.Join(own, ", ")
}

// text fits a description into a table's cell.
func text(description string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.TrimSuffix(description, "."))
}

// An Operation is a method on a path.
type Operation struct {
	Module, Method, Path string

	Summary     string
	Security    []map[string][]string // alternatives: scopes by the name of a scheme
	Parameters  []Parameter
	RequestBody json.RawMessage            // nil: none
	Responses   map[string]json.RawMessage // by status
}

// A Parameter is one of a path, a query or a header.
type Parameter struct {
	Name, In, Description string
	Required              bool
}

// modules are those with an API, in the order of the page.
var modules = []module{
	{"ingest", ingest.OpenAPI},
	{"grouping", grouping.OpenAPI},
	{"ledger", ledger.OpenAPI},
	{"tenants", tenants.OpenAPI},
}

type module struct {
	name    string
	openAPI func() []byte
}

// Operations returns those of all modules, in the order of modules,
// paths and methods.
func Operations() (found []Operation, err error) {
	for _, module := range modules {
		var described part
		if err := json.Unmarshal(module.openAPI(), &described); err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI document of %s: %w", module.name, err)
		}
		found = append(found, described.operations(module.name)...)
	}
	return found, nil
}

// A part is the listed part of an OpenAPI document.
type part struct {
	Paths map[string]map[string]Operation
}

func (p part) operations(module string) (found []Operation) {
	for address, methods := range p.Paths {
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			operation := methods[method]
			operation.Module, operation.Method, operation.Path = module, strings.ToUpper(method), address
			found = append(found, operation)
		}
	}
	slices.SortStableFunc(found, func(a, b Operation) int { return cmp.Compare(a.Path, b.Path) })
	return found
}
