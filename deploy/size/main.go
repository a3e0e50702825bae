package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is beyond these is listed.
const (
	maxMethods = 20 // of a type, unexported ones too
	maxFields  = 12 // of a struct
	minPackage = 120
)

// size counts lines of Go, those of tests being in files that end in
// _test.go, and words of Markdown.
type size struct{ source, tests, words int }

type tree struct {
	modules                   map[string]size
	packages, methods, fields map[string]int
}

func main() {
	t, err := read(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	t.print()
}

// read reads a tree, without what is built, fetched, or data of tests.
func read(root fs.FS) (tree, error) {
	t := tree{map[string]size{}, map[string]int{}, map[string]int{}, map[string]int{}}
	return t, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		return t.add(path, text)
	})
}

func (t tree) add(path string, text []byte) error {
	module, _, inside := strings.Cut(path, "/")
	if !inside {
		module = "."
	}
	of, folder, lines := t.modules[module], filepath.Dir(path), bytes.Count(text, []byte("\n"))
	switch {
	case strings.HasSuffix(path, ".md"):
		of.words += len(bytes.Fields(text))
	case strings.HasSuffix(path, "_test.go"):
		of.tests += lines
	default:
		of.source += lines
		if filepath.Base(path) != "doc.go" { // else it is a package of tests
			t.packages[folder] += lines
		}
	}
	t.modules[module] = of
	if strings.HasSuffix(path, ".md") {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err == nil {
		t.declared(folder, file)
	}
	return err
}

// declared counts the methods and the fields of the types of a file.
func (t tree) declared(folder string, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				t.methods[folder+"."+receiver(n.Recv.List[0].Type)]++
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				t.fields[folder+"."+n.Name.Name] = fields(s)
			}
		}
		return true
	})
}

func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

func fields(s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		n += max(1, len(field.Names))
	}
	return n
}

func (t tree) print() {
	const row = "%8d %8d %8d  %s\n"
	fmt.Printf("%8s %8s %8s\n", "source", "tests", "words")
	var all size
	for _, module := range slices.Sorted(maps.Keys(t.modules)) {
		of := t.modules[module]
		fmt.Printf(row, of.source, of.tests, of.words, module)
		all.source, all.tests, all.words = all.source+of.source, all.tests+of.tests, all.words+of.words
	}
	fmt.Printf(row, all.source, all.tests, all.words, "lines of Go and words of Markdown together")
	list("types with more than %d methods", maxMethods, t.methods, 1)
	list("structs with more than %d fields", maxFields, t.fields, 1)
	list("packages with fewer than %d lines of source", minPackage, t.packages, -1)
}

// list prints what is beyond a limit, above it by 1 and below it by -1,
// the largest first.
func list(title string, limit int, counted map[string]int, by int) {
	names := slices.Collect(maps.Keys(counted))
	names = slices.DeleteFunc(names, func(name string) bool { return counted[name]*by <= limit*by })
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(counted[b]-counted[a], cmp.Compare(a, b)) })
	fmt.Printf("\n%d "+title+"\n", len(names), limit)
	for _, name := range names {
		fmt.Printf("%8d  %s\n", counted[name], name)
	}
}
