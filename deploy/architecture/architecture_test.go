package architecture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// all lists every package of the workspace.
func all(t *testing.T) []goPackage {
	t.Helper()
	packages, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// list lists the packages of one module. `make verify` checks that each
// also builds by its own go.mod.
func list(t *testing.T, room string) []goPackage {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(all(t)), func(p goPackage) bool { return module(p.ImportPath) != room })
}

// workspace reads the packages once for all tests: the listing
// takes seconds, the rules none.
var workspace = sync.OnceValues(func() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,GoFiles,Imports,Deps,TestImports,XTestImports")
	for _, room := range append([]string{"shared", "deploy"}, middle...) {
		cmd.Args = append(cmd.Args, "./"+room+"/...")
	}
	cmd.Dir = filepath.Join("..", "..")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaints.Bytes())
	}
	var packages []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
})

// The source obeys the rules.
func TestRules(t *testing.T) {
	packages := all(t)
	if domains := slices.DeleteFunc(slices.Clone(packages), func(p goPackage) bool { return !isDomain(p) }); len(domains) != len(middle) {
		t.Fatalf("%d domains found, want %v", len(domains), middle)
	}
	for _, p := range packages {
		for _, violation := range slices.Concat(siblings(p), forTests(p), heavy(p), serverless(p), impure(p), throughTheBus(p)) {
			t.Error(violation)
		}
		for _, violation := range slices.Concat(calls(t, p), longMain(t, p)) {
			t.Error(violation)
		}
	}
}

// calls finds a domain that reads the clock or writes to the default log.
func calls(t *testing.T, p goPackage) (found []string) {
	t.Helper()
	if !isPure(p) {
		return nil
	}
	for _, name := range p.GoFiles {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range forbidden(file) {
			found = append(found, fmt.Sprintf("%s: the domain uses %s: take it as an argument", files.Position(call.Pos()), call.Sel.Name))
		}
	}
	return found
}

// forbidden finds uses of clockCalls and loggerCalls in a file.
func forbidden(file *ast.File) (found []*ast.SelectorExpr) {
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := selector.X.(*ast.Ident)
		if ok && (from.Name == "time" && slices.Contains(clockCalls, selector.Sel.Name) ||
			from.Name == "slog" && slices.Contains(loggerCalls, selector.Sel.Name)) {
			found = append(found, selector)
		}
		return true
	})
	return found
}

// mainLines is how long a service's main.go may be: it turns the
// environment into a Config, no more.
const mainLines = 100

func longMain(t *testing.T, p goPackage) []string {
	t.Helper()
	if p.Name != "main" || !slices.Contains(middle, module(p.ImportPath)) {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(p.Dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(raw, []byte("\n")); lines >= mainLines {
		return []string{fmt.Sprintf("%s/main.go has %d lines, at most %d: the wiring belongs in app", p.ImportPath, lines, mainLines-1)}
	}
	return nil
}

// A breach of each rule is found, and allowed imports are not.
func TestBreachesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		p    goPackage
		want string
	}{
		"a module on shared":        {goPackage{ImportPath: prefix + "ledger/app", Deps: []string{prefix + "shared/bus"}}, ""},
		"deploy on a module":        {goPackage{ImportPath: prefix + "deploy/allinone", Deps: []string{prefix + "ledger/app"}}, ""},
		"a module on another":       {goPackage{ImportPath: prefix + "ledger/app", Deps: []string{prefix + "tenants"}}, "ledger may not know tenants"},
		"a test on another module":  {goPackage{ImportPath: prefix + "ledger", XTestImports: []string{prefix + "ingest"}}, "ledger may not know ingest"},
		"shared on a module":        {goPackage{ImportPath: prefix + "shared/bus", Deps: []string{prefix + "ledger"}}, "shared may not know ledger"},
		"a module on deploy":        {goPackage{ImportPath: prefix + "ledger/app", Deps: []string{prefix + "deploy/allinone"}}, "ledger may not know deploy"},
		"a test on testenv":         {goPackage{ImportPath: prefix + "ledger/app", TestImports: []string{prefix + "shared/testenv"}}, ""},
		"a database":                {goPackage{ImportPath: prefix + "shared/testenv/postgrestest", Deps: []string{"github.com/jackc/pgx/v5"}}, ""},
		"a broker":                  {goPackage{ImportPath: prefix + "shared/testenv/kafkatest", Deps: []string{prefix + "shared/embedded/kafka"}}, ""},
		"a database and a broker":   {goPackage{ImportPath: prefix + "shared/testenv/postgrestest", Deps: []string{prefix + "shared/embedded/kafka"}}, "only shared/testenv/kafkatest"},
		"a program on testenv":      {goPackage{ImportPath: prefix + "ledger/app", Imports: []string{prefix + "shared/testenv"}}, "for tests and deploy"},
		"a program on a validator":  {goPackage{ImportPath: prefix + "ledger/cmd/ledger", Name: "main", Deps: []string{testLibraries[0] + "openapi3"}}, "for tests"},
		"a domain on a library":     {goPackage{ImportPath: prefix + "ledger", Imports: []string{"github.com/jackc/pgx/v5"}}, "standard library alone"},
		"a domain on the network":   {goPackage{ImportPath: prefix + "ledger", Imports: []string{"net/http"}}, "no I/O"},
		"a domain on chance":        {goPackage{ImportPath: prefix + "ledger", Imports: []string{"crypto/rand"}}, "no I/O"},
		"a domain on pure packages": {goPackage{ImportPath: prefix + "ledger", Imports: []string{"time", "log/slog", "net/netip"}}, ""},
		"a domain on the calendar":  {goPackage{ImportPath: prefix + "ledger", Imports: []string{calendar}}, ""},
		"a domain on the contract":  {goPackage{ImportPath: prefix + "ledger", Imports: []string{prefix + "shared/contract"}}, "standard library alone"},
		"the calendar on a library": {goPackage{ImportPath: calendar, Imports: []string{"github.com/google/uuid"}}, "standard library alone"},
		"a consumer on parked":      {goPackage{ImportPath: busPath + "/consumer", Imports: []string{busPath, busPath + "/parked"}}, ""},
		"parked on a consumer":      {goPackage{ImportPath: busPath + "/parked", Imports: []string{busPath + "/consumer"}}, "busParts does not say so"},
		"the bus on a part":         {goPackage{ImportPath: busPath, Imports: []string{busPath + "/internal/clock"}}, "busParts does not say so"},
		"a part that is not named":  {goPackage{ImportPath: busPath + "/other"}, "is no part of the bus"},
		"an adapter on the network": {goPackage{ImportPath: prefix + "ledger/internal/http", Imports: []string{"net/http"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := strings.Join(slices.Concat(siblings(test.p), forTests(test.p), heavy(test.p), serverless(test.p), impure(test.p), throughTheBus(test.p)), "\n")
			if (test.want == "") != (found == "") || !strings.Contains(found, test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// A reading of the clock is found, the name of a type is not taken for one.
func TestClockCallsAreFound(t *testing.T) {
	const source = `package p
import "time"
type At struct{ Now time.Time }
func f(a At) time.Time { if a.Now.IsZero() { return time.Now() }; return a.Now }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := forbidden(file); len(found) != 1 {
		t.Errorf("%d looks at the clock found, want 1", len(found))
	}
}
