package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The Makefile tests exactly those packages without the race detector
// that, with their tests, start nothing concurrent: it finds nothing
// there and takes minutes.
func TestSequentialPackagesAreThoseThatStartNothing(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	listed := sequential(string(makefile))
	if len(listed) < 10 {
		t.Fatalf("the Makefile lists %q as SEQUENTIAL: it is not read right", listed)
	}
	for _, p := range all(t) {
		path := strings.TrimPrefix(p.ImportPath, prefix)
		at, tested := startsSomething(t, p.Dir)
		switch i := slices.Index(listed, path); {
		case i >= 0:
			listed = slices.Delete(listed, i, i+1)
			if at != "" {
				t.Errorf("%s: this is concurrent: take %s out of SEQUENTIAL in the Makefile, so that the race detector sees it", at, path)
			}
		case tested && at == "":
			t.Errorf("%s starts nothing beside itself: add it to SEQUENTIAL in the Makefile", path)
		}
	}
	if len(listed) > 0 {
		t.Errorf("the Makefile lists %q as SEQUENTIAL, which are no packages", listed)
	}
}

// startsSomething returns where a package or its tests first start
// something concurrent, if they do, and whether there are tests.
func startsSomething(t *testing.T, dir string) (at string, tested bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		tested = tested || strings.HasSuffix(name, "_test.go")
		if found := concurrent(file); at == "" && len(found) > 0 {
			at = fset.Position(found[0]).String()
		}
	}
	return at, tested
}

func sequential(makefile string) []string {
	_, value, _ := strings.Cut(strings.ReplaceAll(makefile, "\\\n", " "), "\nSEQUENTIAL = ")
	value, _, _ = strings.Cut(value, "\n")
	return strings.Fields(value)
}

// starting are functions, of any receiver, that start something concurrent.
var starting = []string{"AfterFunc", "Go", "NewServer", "NewTLSServer", "NewUnstartedServer", "Parallel"}

// concurrent finds what is concurrent, or is made for that.
func concurrent(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
			found = append(found, n.Pos())
		case *ast.ImportSpec:
			if path := strings.Trim(n.Path.Value, `"`); path == "sync" || strings.HasPrefix(path, "sync/") || strings.HasPrefix(path, "golang.org/x/sync") {
				found = append(found, n.Pos())
			}
		case *ast.CallExpr:
			if call, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(starting, call.Sel.Name) {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

func TestConcurrencyIsFound(t *testing.T) {
	for code, want := range map[string]int{
		"func f() { go f() }":                        1,
		"var c chan int":                             1,
		"func f() { select {} }":                     1,
		"import \"sync/atomic\"":                     1,
		"import \"golang.org/x/sync/errgroup\"":      1,
		"func f(t *testing.T) { t.Parallel() }":      1,
		"func f() { httptest.NewServer(nil) }":       1,
		"import \"time\"\nfunc f() { time.Now() }":   0,
		"func f(l *Ledger) { l.Start(); l.Going() }": 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := concurrent(file); len(got) != want {
			t.Errorf("%q: found %d, want %d", code, len(got), want)
		}
	}
	if got := sequential("A = b\nSEQUENTIAL = c \\\n\td\nE = f\n"); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("read %q of two lines", got)
	}
}
