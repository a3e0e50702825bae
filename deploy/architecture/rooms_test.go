package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tenantRooms are the concepts of tenants: each keeps, serves and shows one of them.
var tenantRooms = []string{"keys", "people", "signin", "registry", "audit", "notifications"}

// roomsKnow are the rooms that import another one, with the reason. All others use an interface of
// their own.
var roomsKnow = map[[2]string]string{}

const tenantsInternal = prefix + "tenants/internal/"

// foreignRooms finds rooms that import one another without a reason.
func foreignRooms(p goPackage) (found []string) {
	from := strings.TrimPrefix(p.ImportPath, tenantsInternal)
	if !slices.Contains(tenantRooms, from) {
		return nil
	}
	for _, imported := range p.Imports {
		to := strings.TrimPrefix(imported, tenantsInternal)
		if slices.Contains(tenantRooms, to) && roomsKnow[[2]string{from, to}] == "" {
			found = append(found, fmt.Sprintf("%s imports %s: say why in roomsKnow, or ask by an interface", p.ImportPath, to))
		}
	}
	return found
}

// maxServiceMethods is how many exported methods a service may have.
const maxServiceMethods = 12

// A source is what the rules about tenants look at in a package.
type source struct {
	methods map[string]int // exported ones, by receiver
	appends []string
}

func readSource(t *testing.T, files map[string]any) source {
	t.Helper()
	read := source{methods: map[string]int{}}
	for name, text := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		read.add(file)
	}
	return read
}

func (s *source) add(file *ast.File) {
	for _, declaration := range file.Decls {
		if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.IsExported() {
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

// appendsEvents finds the methods of a store that append: unitofwork alone may call them. Functions
// of packages, such as its own Append, are none.
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
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// crowded finds types of a room with too many methods. A Store has one for each question.
func crowded(importPath string, read source) (found []string) {
	for name, methods := range read.methods {
		if methods > maxServiceMethods && name != "Store" {
			found = append(found, fmt.Sprintf("%s.%s has %d exported methods, at most %d: split it", importPath, name, methods, maxServiceMethods))
		}
	}
	return found
}

// otherWriters finds what appends events beside the unit of work.
func otherWriters(importPath string, read source) []string {
	if len(read.appends) == 0 || path.Base(importPath) == "unitofwork" {
		return nil
	}
	return []string{fmt.Sprintf("%s appends events by %q: only unitofwork does", importPath, read.appends)}
}

// The rooms of tenants keep apart, stay small, and write by the unit of work alone.
func TestTenantRooms(t *testing.T) {
	seen := 0
	for _, p := range list(t, "tenants") {
		for _, violation := range foreignRooms(p) {
			t.Error(violation)
		}
		if !strings.HasPrefix(p.ImportPath, tenantsInternal) || isForTests(p.ImportPath) {
			continue
		}
		files := map[string]any{}
		for _, name := range p.GoFiles {
			files[filepath.Join(p.Dir, name)] = nil
		}
		read := readSource(t, files)
		for _, violation := range otherWriters(p.ImportPath, read) {
			t.Error(violation)
		}
		if !slices.Contains(tenantRooms, path.Base(p.ImportPath)) {
			continue
		}
		seen++
		for _, violation := range crowded(p.ImportPath, read) {
			t.Error(violation)
		}
	}
	if seen < 3 {
		t.Errorf("found %d rooms of %q", seen, tenantRooms)
	}
}

// A breach of each of these rules is found, and what is allowed is not.
func TestBreachesOfRoomsAreFound(t *testing.T) {
	keys := tenantsInternal + "keys"
	if found := foreignRooms(goPackage{ImportPath: keys, Imports: []string{tenantsInternal + "audit"}}); len(found) != 1 {
		t.Errorf("a room on another: %q", found)
	}
	if found := foreignRooms(goPackage{ImportPath: keys, Imports: []string{tenantsInternal + "unitofwork"}}); len(found) != 0 {
		t.Errorf("a room on a kit: %q", found)
	}
	for text, want := range map[string]int{
		"package p\nfunc f() { events.AppendTx(ctx) }":                                                    1,
		"package p\nfunc f() { u.Events.Append(ctx) }":                                                    1,
		"package p\nimport \"tenants/internal/unitofwork\"\nfunc f() { events.Append(ctx) }":              1,
		"package p\nimport \"tenants/internal/unitofwork\"\nfunc f() { unitofwork.Append[S, E](ctx, u) }": 0,
	} {
		if found := otherWriters(keys, readSource(t, map[string]any{"p.go": text})); len(found) != want {
			t.Errorf("%s: found %q", text, found)
		}
	}
	text := "package p\n"
	for i := range maxServiceMethods {
		text += fmt.Sprintf("func (s *Service) M%d() {}\n", i)
	}
	if found := crowded(keys, readSource(t, map[string]any{"p.go": text})); len(found) != 0 {
		t.Errorf("as many methods as there may be: %q", found)
	}
	if found := crowded(keys, readSource(t, map[string]any{"p.go": text + "func (s Service) More() {}"})); len(found) != 1 {
		t.Errorf("one method more: %q", found)
	}
}
