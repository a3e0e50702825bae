package architecture

import (
	"go/ast"
	"slices"
	"testing"
)

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
