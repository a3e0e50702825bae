package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// bounded begins the comment of a map's bound.
const bounded = "bounded by "

// A map of a struct or package that is written to, or that goroutines
// share (beside a lock, or a sync.Map), may live as long as the
// process: its comment names its bound. Maps by number have partitions
// or brokers as keys, which are few.
func TestMapsNameTheirBound(t *testing.T) {
	found := 0
	for _, p := range all(t) {
		if isForTests(p.ImportPath) || module(p.ImportPath) == "deploy" && !strings.HasPrefix(p.ImportPath, prefix+"deploy/gateway") {
			continue
		}
		fset, files := token.NewFileSet(), []*ast.File{}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			testenv.Must(t, err)
			files = append(files, file)
		}
		for _, m := range growingMaps(files) {
			found++
			if !m.bounded {
				t.Errorf("%s: the map %s says no bound; comment it: // %s…", fset.Position(m.at), m.name, bounded)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d maps: the source is not read right", found)
	}
}

// growingMap is a struct's field, or a package's variable.
type growingMap struct {
	name    string
	at      token.Pos
	bounded bool
}

// growingMaps finds the maps of a package that may grow. A field is
// matched by its name, in any struct.
func growingMaps(files []*ast.File) (found []growingMap) {
	written := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					noteWritten(written, left)
				}
			case *ast.IncDecStmt:
				noteWritten(written, n.X)
			}
			return true
		})
	}
	for _, file := range files {
		found = append(found, variables(file, written)...)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				found = append(found, fields(s, written)...)
			}
			return true
		})
	}
	return found
}

// noteWritten notes the name of the map to which an element is assigned.
func noteWritten(written map[string]bool, left ast.Expr) {
	for element, ok := left.(*ast.IndexExpr); ok; element, ok = left.(*ast.IndexExpr) {
		switch of := element.X.(type) {
		case *ast.SelectorExpr:
			written[of.Sel.Name] = true
		case *ast.Ident:
			written[of.Name] = true
		}
		left = element.X
	}
}

func fields(s *ast.StructType, written map[string]bool) (found []growingMap) {
	locked := slices.ContainsFunc(s.Fields.List, isLock)
	for _, field := range s.Fields.List {
		isWritten := slices.ContainsFunc(field.Names, func(name *ast.Ident) bool { return written[name.Name] })
		if isOfSync(field.Type, "Map") || isMapByName(field.Type) && (locked || isWritten) {
			found = append(found, growingMap{fmt.Sprint(field.Names), field.Pos(), saysBound(field.Doc, field.Comment)})
		}
	}
	return found
}

func variables(file *ast.File, written map[string]bool) (found []growingMap) {
	for _, decl := range file.Decls {
		variables, ok := decl.(*ast.GenDecl)
		if !ok || variables.Tok != token.VAR {
			continue
		}
		for _, spec := range variables.Specs {
			v := spec.(*ast.ValueSpec)
			isMap := isMapByName(v.Type) || slices.ContainsFunc(v.Values, makesMap)
			isWritten := slices.ContainsFunc(v.Names, func(name *ast.Ident) bool { return written[name.Name] })
			if isOfSync(v.Type, "Map") || isMap && isWritten {
				found = append(found, growingMap{fmt.Sprint(v.Names), v.Pos(), saysBound(variables.Doc, v.Doc, v.Comment)})
			}
		}
	}
	return found
}

// makesMap reports whether a value is a new map.
func makesMap(value ast.Expr) bool {
	switch value := value.(type) {
	case *ast.CompositeLit:
		return isMapByName(value.Type)
	case *ast.CallExpr:
		return nameOf(value.Fun) == "make" && isMapByName(value.Args[0])
	}
	return false
}

// saysBound reports whether a comment names a bound. All there ever was
// is no bound.
func saysBound(comments ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool {
		_, bound, found := strings.Cut(c.Text(), bounded)
		return found && !slices.Contains(strings.Fields(bound), "ever")
	})
}

func isLock(field *ast.Field) bool {
	return isOfSync(field.Type, "Mutex") || isOfSync(field.Type, "RWMutex")
}

func isOfSync(of ast.Expr, name string) bool {
	selector, ok := of.(*ast.SelectorExpr)
	return ok && nameOf(selector.X) == "sync" && selector.Sel.Name == name
}

// isMapByName reports whether a type is a map with keys other than
// numbers, or contains such a map.
func isMapByName(of ast.Expr) bool {
	m, ok := of.(*ast.MapType)
	return ok && (!slices.Contains([]string{"int", "int32"}, nameOf(m.Key)) || isMapByName(m.Value))
}

// A map without a bound is found if something is put into it, beside a
// lock, and if it locks itself.
func TestMapsWithoutABoundAreFound(t *testing.T) {
	const source = `package p
type alone struct { byName map[string]int }
type grown struct {
	byKey, byID map[string]int
	counts map[string]map[int]int
	ends map[int]int64
	kept map[string]bool // bounded by the kinds
}
type shared struct {
	mu sync.Mutex
	byUser map[string]int
	byOther map[key]int // bounded by the keys that there are
	byPartition map[int]int
	byBoth map[int]map[string]int
	byDeletion map[string]int // bounded by what was ever deleted
}
type locked struct { all sync.Map }
var words = map[string]int{"a": 1}
var seen = map[string]int{}
var cache sync.Map
func (g *grown) add(k string) { g.byID[k] = 1; g.counts[k][1]++; g.ends[1] += 2; g.kept[k] = true; seen[k]++ }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	testenv.Must(t, err)
	var names []string
	for _, m := range growingMaps([]*ast.File{file}) {
		names = append(names, fmt.Sprint(m.name, m.bounded))
	}
	want := []string{"[seen]false", "[cache]false", "[byKey byID]false", "[counts]false", "[kept]true", "[byUser]false", "[byOther]true", "[byBoth]false", "[byDeletion]false", "[all]false"}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
}
