package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tenantRooms are the concepts of tenants: each stores, serves and shows it.
var tenantRooms = []string{"keys", "people", "signin", "registry", "audit", "notifications"}

// rooms are the concepts of each module, each with its own Service, and
// their common ground.
var rooms = map[string][]string{
	"ingest":   {"intake", "searches"},
	"grouping": {"groups"},
	"tenants":  tenantRooms,
	"ledger":   {"accounts", "balances", "booking", "budgets", "forecasts", "grants", "integrity", "plans", "usage", "unitofwork", "snapshot"},
}

// roomsKnow are the rooms that import another one, with the reason. All
// others use interfaces of their own.
var roomsKnow = map[string]string{
	"ledger: accounts -> balances":  "an account is shown with its balance",
	"ledger: forecasts -> balances": "what would be begins with what is",
	"ledger: forecasts -> budgets":  "a dry run asks the budgets as well",
	"ledger: forecasts -> plans":    "a simulation compares subscriptions",
	"ledger: plans -> balances":     "a subscription is shown with the state of its balance",
}

// ground are the rooms that every room of their module may import.
var ground = []string{"unitofwork", "snapshot"}

// roomOf returns the concept of a module's package; "" without one.
func roomOf(importPath string) (of, room string) {
	of = module(importPath)
	room, inside := strings.CutPrefix(importPath, prefix+of+"/internal/")
	if !inside || !slices.Contains(rooms[of], room) {
		return of, ""
	}
	return of, room
}

// foreignRooms finds rooms that import one another without a reason,
// and notes the used reasons.
func foreignRooms(p goPackage, used map[string]bool) (found []string) {
	of, from := roomOf(p.ImportPath)
	if from == "" {
		return nil
	}
	for _, imported := range p.Imports {
		_, to := roomOf(imported)
		if to == "" || slices.Contains(ground, to) {
			continue
		}
		edge := fmt.Sprintf("%s: %s -> %s", of, from, to)
		if roomsKnow[edge] == "" {
			found = append(found, edge+": say why in roomsKnow, or ask by an interface")
			continue
		}
		used[edge] = true
	}
	return found
}

// A source is what the rules check of a package.
type source struct {
	methods map[string]int // by receiver; only those that count for the size of a type
	appends []string
}

func readSource(t *testing.T, p goPackage) source {
	t.Helper()
	read := source{methods: map[string]int{}}
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		read.parse(t, name, string(text))
	}
	return read
}

// parsed returns the source of a package of one file.
func parsed(t *testing.T, text string) source {
	t.Helper()
	read := source{methods: map[string]int{}}
	read.parse(t, "p.go", text)
	return read
}

func (s *source) parse(t *testing.T, name, text string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s.add(file)
}

func (s *source) add(file *ast.File) {
	for _, declaration := range file.Decls {
		if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil && counts(method) {
			s.methods[receiver(method)]++
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall {
			return true
		}
		function := call.Fun
		if index, generic := function.(*ast.IndexListExpr); generic {
			function = index.X
		}
		if selector, ok := function.(*ast.SelectorExpr); ok && appendsEvents(file, selector) {
			s.appends = append(s.appends, selector.Sel.Name)
		}
		return true
	})
}

// appendsEvents finds a store's methods that append: only unitofwork may
// call them. Functions of packages, such as its own Append, do not count.
func appendsEvents(file *ast.File, selector *ast.SelectorExpr) bool {
	if selector.Sel.Name != "Append" && selector.Sel.Name != "AppendTx" {
		return false
	}
	from, isName := selector.X.(*ast.Ident)
	return !isName || !slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		name := strings.Trim(spec.Path.Value, `"`)
		return spec.Name == nil && path.Base(name) == from.Name || spec.Name != nil && spec.Name.Name == from.Name
	})
}

func receiver(method *ast.FuncDecl) string {
	of := method.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// otherWriters finds what appends events besides the unit of work.
func otherWriters(importPath string, read source) []string {
	if len(read.appends) == 0 || path.Base(importPath) == "unitofwork" {
		return nil
	}
	return []string{fmt.Sprintf("%s appends events by %q: only unitofwork does", importPath, read.appends)}
}

// Rooms do not import one another, and write only by the unit of work.
func TestRooms(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	for of := range rooms {
		for _, p := range list(t, of) {
			for _, violation := range foreignRooms(p, used) {
				t.Error(violation)
			}
			if !strings.HasPrefix(p.ImportPath, prefix+of+"/internal/") || isForTests(p.ImportPath) {
				continue
			}
			for _, violation := range otherWriters(p.ImportPath, readSource(t, p)) {
				t.Error(violation)
			}
			_, room := roomOf(p.ImportPath)
			seen[of+"/"+room] = true
		}
		for _, room := range rooms[of] {
			if !seen[of+"/"+room] {
				t.Errorf("there is no room %s of %s", room, of)
			}
		}
	}
	for edge := range roomsKnow {
		if !used[edge] {
			t.Errorf("%s is imported no more", edge)
		}
	}
}

// A breach of each of these rules is found, and what is allowed is not.
func TestBreachesOfRoomsAreFound(t *testing.T) {
	const tenants, ledger = prefix + "tenants/internal/", prefix + "ledger/internal/"
	for _, c := range []struct {
		from, to string
		want     int
	}{
		{tenants + "keys", tenants + "audit", 1}, {tenants + "keys", tenants + "unitofwork", 0},
		{ledger + "budgets", ledger + "grants", 1}, {ledger + "unitofwork", ledger + "plans", 1}, {ledger + "booking", ledger + "unitofwork", 0},
		{ledger + "plans", ledger + "balances", 0}, {ledger + "balances", ledger + "plans", 1}, {ledger + "services", ledger + "plans", 0},
	} {
		if found := foreignRooms(goPackage{ImportPath: c.from, Imports: []string{c.to}}, map[string]bool{}); len(found) != c.want {
			t.Errorf("%s on %s: %q", c.from, c.to, found)
		}
	}
	for text, want := range map[string]int{
		"package p\nfunc f() { events.AppendTx(ctx) }":                                                    1,
		"package p\nfunc f() { u.Events.Append(ctx) }":                                                    1,
		"package p\nimport \"tenants/internal/unitofwork\"\nfunc f() { events.Append(ctx) }":              1,
		"package p\nimport \"tenants/internal/unitofwork\"\nfunc f() { unitofwork.Append[S, E](ctx, u) }": 0,
	} {
		if found := otherWriters(tenants+"keys", parsed(t, text)); len(found) != want {
			t.Errorf("%s: found %q", text, found)
		}
	}
}

// A goPackage is a package in the output of `go list -json`.
type goPackage struct {
	ImportPath   string
	Dir          string
	Name         string
	GoFiles      []string
	Imports      []string
	Deps         []string // Imports and theirs, recursively
	TestImports  []string
	XTestImports []string
}

const prefix = "github.com/weirlog/weir/"

// module returns the module of a package of ours, such as ledger; ""
// for all others.
func module(importPath string) string {
	rest, ours := strings.CutPrefix(importPath, prefix)
	if !ours {
		return ""
	}
	room, _, _ := strings.Cut(rest, "/")
	return room
}

// middle are the modules between shared and deploy. They communicate
// only by events.
var middle = []string{"ingest", "ledger", "grouping", "tenants"}

const busPath = prefix + "shared/bus"

// busParts are the parts of the bus that each part may import directly;
// all may import the bus itself, which imports none of them.
var busParts = map[string][]string{
	"":                {},
	"internal/wire":   {},
	"internal/clock":  {},
	"internal/batch":  {"internal/wire"},
	"internal/broker": {"internal/batch", "internal/clock", "internal/wire"},
	"internal/follow": {"internal/batch", "internal/broker", "internal/clock", "internal/wire"},
	"cluster":         {"internal/broker"},
	"topics":          {"internal/broker", "internal/clock"},
	"parked":          {},
	"publisher":       {"internal/batch", "internal/broker", "internal/clock", "internal/wire"},
	"consumer": {"consumer/internal/deferred", "consumer/internal/lanes", "consumer/internal/positions", "consumer/internal/status",
		"consumer/internal/transaction", "internal/broker", "internal/clock", "internal/follow", "internal/wire", "parked"},
	"consumer/internal/deferred":    {"consumer/internal/lanes", "internal/batch", "internal/broker", "internal/wire"},
	"consumer/internal/lanes":       {"internal/batch", "internal/clock", "internal/wire"},
	"consumer/internal/positions":   {"consumer/internal/lanes", "internal/broker", "internal/wire"},
	"consumer/internal/status":      {"consumer/internal/lanes", "internal/broker", "internal/clock"},
	"consumer/internal/transaction": {"consumer/internal/lanes", "consumer/internal/positions", "consumer/internal/status", "internal/clock"},
	"state":                         {"internal/broker", "internal/clock", "internal/follow", "internal/wire", "logrange"},
	"logrange":                      {"internal/broker", "internal/follow"},
	"logend":                        {"internal/batch", "internal/broker", "internal/clock", "logrange"},
	"relay":                         {"internal/clock", "logrange", "publisher"},
}

// busPart returns a package's part of the bus; its tests and bustest
// may import all of it.
func busPart(importPath string) (part string, ours bool) {
	rest, ours := strings.CutPrefix(importPath, busPath)
	return strings.TrimPrefix(rest, "/"), ours && (rest == "" || rest[0] == '/') && !isForTests(importPath)
}

// throughTheBus finds imports against busParts.
func throughTheBus(p goPackage) (found []string) {
	from, ours := busPart(p.ImportPath)
	if !ours {
		return nil
	}
	allowed, known := busParts[from]
	if !known {
		return []string{fmt.Sprintf("%s is no part of the bus that busParts names", p.ImportPath)}
	}
	for _, to := range p.Imports {
		if part, ours := busPart(to); ours && part != "" && !slices.Contains(allowed, part) {
			found = append(found, fmt.Sprintf("%s imports %s: busParts does not say so", p.ImportPath, to))
		}
	}
	return found
}

// forTests finds programs that import what is for tests: testenv, and
// the packages whose names end in test.
func forTests(p goPackage) (found []string) {
	if isBenchmark(p.ImportPath) || isForTests(p.ImportPath) {
		return nil
	}
	for _, to := range p.Imports {
		if to == "testing" || module(to) != "" && isForTests(to) {
			found = append(found, fmt.Sprintf("%s imports %s, which is for tests and benchmarks", p.ImportPath, to))
		}
	}
	return found
}

// testLibraries are only for tests: packages, and folders of them.
var testLibraries = []string{prefix + "shared/testenv", "github.com/getkin/kin-openapi"}

// isBenchmark reports whether a package is of the program that measures.
func isBenchmark(importPath string) bool {
	return strings.HasPrefix(importPath+"/", prefix+"deploy/bench/")
}

// heavy finds programs that import a library for tests, directly or not.
func heavy(p goPackage) (found []string) {
	if p.Name != "main" || module(p.ImportPath) == "" || isBenchmark(p.ImportPath) || isForTests(p.ImportPath) {
		return nil
	}
	for _, to := range p.Deps {
		if slices.ContainsFunc(testLibraries, func(library string) bool { return to == library || strings.HasPrefix(to, library+"/") }) {
			found = append(found, fmt.Sprintf("the program %s stands on %s, which is for tests", p.ImportPath, to))
		}
	}
	return found
}

// servers are libraries that serve in tests, with the packages for tests
// that may import them: all tests that import such a package link them.
var servers = map[string][]string{
	prefix + "shared/embedded/kafka":     {"shared/testenv/kafkatest", "shared/bus/bustest", "deploy/allinone/allinonetest"},
	"github.com/twmb/franz-go/pkg/kfake": {"shared/bus/bustest"},
}

// serverless finds packages for tests with an unexpected server: with
// PostgreSQL, a test gets no broker.
func serverless(p goPackage) (found []string) {
	if !isForTests(p.ImportPath) {
		return nil
	}
	for _, to := range p.Deps {
		if bring, serves := servers[to]; serves && !slices.Contains(bring, strings.TrimPrefix(p.ImportPath, prefix)) {
			found = append(found, fmt.Sprintf("%s stands on %s: only %s bring it to tests", p.ImportPath, to, strings.Join(bring, ", ")))
		}
	}
	return found
}

func isForTests(importPath string) bool {
	return slices.ContainsFunc(strings.Split(importPath, "/"), func(part string) bool {
		return part == "testenv" || strings.HasSuffix(part, "test")
	})
}

// A function with one of these is in a transaction, and may write.
var transactional = []string{"Tx", "Unit"}

// nestingAllowed names the functions to which a transaction may pass
// another closure, with the reason.
var nestingAllowed = map[string]string{
	"ForEachRow": "reads rows in place",
}

func runsInTransaction(closure *ast.FuncLit) bool {
	return slices.ContainsFunc(closure.Type.Params.List, func(parameter *ast.Field) bool {
		kind := parameter.Type
		if pointer, ok := kind.(*ast.StarExpr); ok {
			kind = pointer.X
		}
		return slices.Contains(transactional, lastName(kind))
	})
}

// lastName returns the name of a type or function without its
// package or receiver.
func lastName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.Ident:
		return of.Name
	case *ast.IndexExpr:
		return lastName(of.X)
	}
	return ""
}

// isCondition reports whether a call takes closures that only compare or choose.
func isCondition(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && (pkg.Name == "slices" || pkg.Name == "maps")
}

// nestedClosures finds the functions, or "", to which a closure in a
// transaction passes another one.
func nestedClosures(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if closure, ok := n.(*ast.FuncLit); ok && runsInTransaction(closure) {
			found = append(found, closuresIn(closure.Body)...)
		}
		return true
	})
	return found
}

func closuresIn(body *ast.BlockStmt) (found []string) {
	passedTo := map[ast.Expr]string{}
	called := map[ast.Expr]bool{} // on the spot, such as deferred ones
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[n.Fun] = true
			for _, argument := range n.Args {
				passedTo[argument] = lastName(n.Fun)
			}
			return !isCondition(n)
		case *ast.FuncLit:
			if !called[n] {
				found = append(found, passedTo[n])
			}
		}
		return true
	})
	return found
}

// A transaction's writes can be read from top to bottom: no closure in
// a transaction contains another one.
func TestTransactionsHoldNoClosures(t *testing.T) {
	used := map[string]bool{}
	for _, p := range all(t) {
		if isForTests(p.ImportPath) || module(p.ImportPath) == "deploy" {
			continue
		}
		for _, file := range syntax(t, p) {
			for _, callee := range nestedClosures(file) {
				if used[callee] = true; nestingAllowed[callee] == "" {
					t.Errorf("%s: a closure in a transaction passes another one to %q: make it a method", p.ImportPath, callee)
				}
			}
		}
	}
	for name := range nestingAllowed {
		if !used[name] {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

// A closure within one that writes is found; not one that compares, nor
// one outside of a transaction.
func TestNestedClosuresAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`f(func(tx pgx.Tx) error { return g(func() error { return nil }) })`:                 1,
		`f(func(u *unitofwork.Unit) error { decide := func() {}; decide(); return nil })`:    1,
		`f(func(tx pgx.Tx) error { slices.SortFunc(a, func(x, y int) int { return x-y }) })`: 0,
		`f(func(tx pgx.Tx) error { defer func() { n++ }(); return g(tx) })`:                  0,
		`f(func() { g(func() {}) })`:           0,
		`f(func(tx pgx.Tx) { g(tx, a.apply)})`: 0,
	} {
		if found := nestedClosures(syntaxOf(t, "package p\nfunc do() {\n"+body+"\n}")); len(found) != want {
			t.Errorf("%s: %q", body, found)
		}
	}
}
