package apireference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	tenants "github.com/weirlog/weir/tenants/app"
)

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
