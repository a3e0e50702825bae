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
	"ledger": {"accounts", "balances", "booking", "budgets", "forecasts", "grants", "integrity", "plans", "testclocks", "statements", "usage", "unitofwork", "snapshot",
		"watermark"},
}

// roomsKnow are the rooms that import another one, with the reason. All
// others use interfaces of their own.
var roomsKnow = map[string]string{
	"ledger: accounts -> balances":     "an account is shown with its balance",
	"ledger: forecasts -> balances":    "what would be begins with what is",
	"ledger: forecasts -> budgets":     "a dry run asks the budgets as well",
	"ledger: forecasts -> plans":       "a simulation compares subscriptions",
	"ledger: plans -> balances":        "a subscription is shown with the state of its balance",
	"ledger: unitofwork -> statements": "a period's statement is made in the transaction that closes it",
}

// ground are the rooms that every room of their module may import.
var ground = []string{"unitofwork", "snapshot", "watermark"}

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
