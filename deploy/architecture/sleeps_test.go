package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// fakeTime is the package in whose tests a sleep costs nothing.
const fakeTime = `"testing/synctest"`

// sleeps finds a file's calls of time.Sleep that no comment on their
// line explains, and that are not the step of a polling loop.
func sleeps(fset *token.FileSet, file *ast.File) (found []token.Pos) {
	if slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == fakeTime }) {
		return nil
	}
	explained := map[int]bool{}
	for _, group := range file.Comments {
		explained[fset.Position(group.Pos()).Line] = true
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if loop, ok := node.(*ast.ForStmt); ok && looks(loop) {
			explained[fset.Position(loop.Pos()).Line], explained[fset.Position(loop.Body.Lbrace).Line+1] = true, true
		}
		call, ok := node.(*ast.CallExpr)
		if ok && isSleep(call) && !explained[fset.Position(call.Pos()).Line] {
			found = append(found, call.Pos())
		}
		return true
	})
	return found
}

// looks reports whether a loop only looks, and sleeps between two looks.
func looks(loop *ast.ForStmt) bool {
	return loop.Init != nil && loop.Post != nil || loop.Cond != nil && len(loop.Body.List) == 1
}

func isSleep(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Sleep" && lastName(selector.X) == "time"
}

// A test waits for what it can observe. If it sleeps, for a fault or a
// pace that is a time, the line says so.
func TestSleepsHaveReasons(t *testing.T) {
	files := 0
	for _, p := range all(t) {
		names, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range sleeps(fset, file) {
				t.Errorf("%s: wait for what can be seen, or say on this line why the time itself is needed", fset.Position(at))
			}
			files++
		}
	}
	if files < 300 {
		t.Errorf("only %d files with tests were found", files)
	}
}

// A sleep without a reason is found.
func TestSleepsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"time.Sleep(d)":                                     1,
		"time.Sleep(d) // the fault is the time":            0,
		"for {\ntime.Sleep(d)\n}":                           1,
		"for !done() {\ntime.Sleep(d)\n}":                   0,
		"for !done() {\nwork()\ntime.Sleep(d)\n}":           1,
		"for end := now(); now() < end; time.Sleep(d) {\n}": 0,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "a_test.go", "package p\nfunc f() {\n"+text+"\n}", parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if found := sleeps(fset, file); len(found) != want {
			t.Errorf("%s: found %d, want %d", text, len(found), want)
		}
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "a_test.go", "package p\nimport \"testing/synctest\"\nfunc f() { time.Sleep(d) }", parser.ParseComments)
	if found := sleeps(token.NewFileSet(), file); len(found) > 0 {
		t.Errorf("in fake time: %d", len(found))
	}
}
