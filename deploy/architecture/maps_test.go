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
)

// bounded begins the comment of a map's bound.
const bounded = "bounded by "

// A map that goroutines share, because it is beside a lock or is a sync.Map, lives as long as the
// process: its comment names its bound. Maps by number have partitions or brokers as keys, of which
// there are few.
func TestSharedMapsSayTheirBound(t *testing.T) {
	found := 0
	for _, p := range all(t) {
		if isForTests(p.ImportPath) || module(p.ImportPath) == "deploy" && !strings.HasPrefix(p.ImportPath, prefix+"deploy/gateway") {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range sharedMaps(file) {
				found++
				if !m.bounded {
					t.Errorf("%s: the map %s says no bound; comment it: // %s…", fset.Position(m.at), m.name, bounded)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d maps: the source is not read right", found)
	}
}

// sharedMap is a field of a struct.
type sharedMap struct {
	name    string
	at      token.Pos
	bounded bool
}

// sharedMaps finds the maps of a file that goroutines share.
func sharedMaps(file *ast.File) (found []sharedMap) {
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		locked := slices.ContainsFunc(s.Fields.List, isLock)
		for _, field := range s.Fields.List {
			if isSyncMap(field) || locked && isMapByName(field.Type) {
				found = append(found, sharedMap{fmt.Sprint(field.Names), field.Pos(), strings.Contains(field.Doc.Text()+field.Comment.Text(), bounded)})
			}
		}
		return true
	})
	return found
}

func isLock(field *ast.Field) bool { return isOfSync(field, "Mutex") || isOfSync(field, "RWMutex") }

func isSyncMap(field *ast.Field) bool { return isOfSync(field, "Map") }

func isOfSync(field *ast.Field, name string) bool {
	selector, ok := field.Type.(*ast.SelectorExpr)
	return ok && nameOf(selector.X) == "sync" && selector.Sel.Name == name
}

// isMapByName reports whether a type is a map by something else than numbers, or one that holds
// such a map.
func isMapByName(of ast.Expr) bool {
	m, ok := of.(*ast.MapType)
	return ok && (!slices.Contains([]string{"int", "int32"}, nameOf(m.Key)) || isMapByName(m.Value))
}

// A map without a bound is found beside a lock, and as one that locks itself.
func TestMapsWithoutABoundAreFound(t *testing.T) {
	const source = `package p
type alone struct { byName map[string]int }
type shared struct {
	mu sync.Mutex
	byName map[string]int
	byOther map[key]int // bounded by the keys that there are
	byPartition map[int]int
	byBoth map[int]map[string]int
}
type locked struct { all sync.Map }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range sharedMaps(file) {
		names = append(names, fmt.Sprint(m.name, m.bounded))
	}
	if want := []string{"[byName]false", "[byOther]true", "[byBoth]false", "[all]false"}; !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
}
