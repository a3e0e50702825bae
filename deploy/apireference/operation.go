package apireference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
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

// modules are those with a part, in the order of the page.
var modules = []string{"ingest", "grouping", "ledger", "tenants"}

// Scan reads the parts below the root of the repository; operations are
// in the order of modules, paths and methods.
func Scan(root string) (found []Operation, err error) {
	for _, module := range modules {
		parts, err := partsOf(os.DirFS(root), module)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			found = append(found, part.operations(module)...)
		}
	}
	slices.SortStableFunc(found, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(slices.Index(modules, a.Module), slices.Index(modules, b.Module)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
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
	return found
}

// partsOf reads every part of a module.
func partsOf(root fs.FS, module string) (parts []part, err error) {
	err = fs.WalkDir(root, module+"/internal", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Base(file) != "openapi.json" {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		var read part
		if err := json.Unmarshal(text, &read); err != nil {
			return fmt.Errorf("cannot read %s: %w", file, err)
		}
		parts = append(parts, read)
		return nil
	})
	return parts, err
}
