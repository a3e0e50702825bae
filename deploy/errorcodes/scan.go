package errorcodes

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An Answer is one way in which a module answers with a code.
type Answer struct {
	Code   string
	Status int    // 0: a fault of one entry or member, for any status of the whole answer
	Module string // shared: any
	Detail string // with "…" for variable parts
	Fix    string // if it is separate
}

// modules are the folders whose source answers requests.
var modules = []string{"grouping", "ingest", "ledger", "shared", "tenants"}

// A maker is a function that makes an answer from its arguments: the
// indices of the code and of the rest, -1 for none.
type maker struct{ code, status, detail, fix int }

// source is the parsed source.
type source struct {
	files     []sourceFile
	constants map[string]string // names of codes
	makers    map[string]maker  // by name, unexported ones with their folder before it
}

type sourceFile struct {
	*ast.File

	module, dir string
}

// key returns the key of a function's name in a file.
func (f sourceFile) key(name string) string {
	if ast.IsExported(name) {
		return name
	}
	return f.dir + "." + name
}

// Scan reads the source below a root.
func Scan(root string) ([]Answer, error) {
	s := source{constants: map[string]string{}, makers: map[string]maker{}}
	for _, module := range modules {
		if err := s.read(root, module); err != nil {
			return nil, err
		}
	}
	for _, file := range s.files {
		ast.Inspect(file.File, func(node ast.Node) bool { return s.declare(file, node) })
	}
	var answers []Answer
	for _, file := range s.files {
		answers = append(answers, s.answers(file)...)
	}
	slices.SortStableFunc(answers, func(a, b Answer) int { return strings.Compare(a.Code, b.Code) })
	return answers, nil
}

func (s *source) read(root, module string) error {
	return filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" || name == "testenv" || name == "benchmark" || strings.HasSuffix(name, "test")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("cannot read the source: %w", err)
		}
		s.files = append(s.files, sourceFile{file, module, filepath.Dir(path)})
		return nil
	})
}

var namesCode = regexp.MustCompile(`^[cC]ode[A-Z]`)

// declare notes constants that are codes, and functions that take one.
func (s *source) declare(file sourceFile, node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if namesCode.MatchString(name.Name) && i < len(n.Values) {
				if text, ok := literal(n.Values[i]); ok {
					s.constants[name.Name] = text
				}
			}
		}
	case *ast.FuncDecl:
		if m, ok := makerOf(n.Type); ok {
			s.makers[file.key(n.Name.Name)] = m
		}
	}
	return true
}

// makerOf finds a maker's parameters by their names: code, detail and the rest.
func makerOf(function *ast.FuncType) (m maker, ok bool) {
	m, at := maker{-1, -1, -1, -1}, 0
	for _, field := range function.Params.List {
		for _, name := range field.Names {
			switch name.Name {
			case "code":
				m.code = at
			case "status":
				m.status = at
			case "detail":
				m.detail = at
			case "fix":
				m.fix = at
			}
			at++
		}
	}
	return m, m.code >= 0 && m.detail >= 0
}

func (s *source) answers(file sourceFile) (found []Answer) {
	ast.Inspect(file.File, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		m, known := s.makers[file.key(nameOf(call.Fun))]
		if !known || m.code >= len(call.Args) {
			return true
		}
		code, ok := s.code(call.Args[m.code])
		if !ok || !isCode.MatchString(code) { // not of this API
			return true
		}
		found = append(found, Answer{
			Code: code, Module: file.module, Status: statusOf(call, m), Detail: said(call.Args, m.detail), Fix: said(call.Args, m.fix),
		})
		return true
	})
	return found
}

var isCode = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func nameOf(function ast.Expr) string {
	switch f := function.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func (s *source) code(argument ast.Expr) (code string, ok bool) {
	if conversion, ok := argument.(*ast.CallExpr); ok && nameOf(conversion.Fun) == "string" && len(conversion.Args) == 1 {
		argument = conversion.Args[0]
	}
	if text, ok := literal(argument); ok {
		return text, true
	}
	code, ok = s.constants[nameOf(argument)]
	return code, ok
}

// statuses are those of makers without that argument.
var statuses = map[string]int{"Invalid": http.StatusBadRequest, "refuse": http.StatusBadRequest, "unauthorized": http.StatusUnauthorized}

var statusNames = func() map[string]int {
	names := map[string]int{}
	for status := range 600 {
		if text := http.StatusText(status); text != "" {
			names["Status"+strings.NewReplacer(" ", "", "-", "", "'", "").Replace(text)] = status
		}
	}
	return names
}()

func statusOf(call *ast.CallExpr, m maker) int {
	if m.status < 0 {
		return statuses[nameOf(call.Fun)]
	}
	return statusNames[nameOf(call.Args[m.status])]
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)

// said returns the text of an argument, as far as the source has it.
func said(arguments []ast.Expr, at int) string {
	if at < 0 || at >= len(arguments) {
		return ""
	}
	argument := arguments[at]
	if call, ok := argument.(*ast.CallExpr); ok && nameOf(call.Fun) == "Sprintf" {
		argument = call.Args[0]
		text, _ := literal(argument)
		return verb.ReplaceAllString(text, "…")
	}
	text, _ := literal(argument)
	return text
}

// literal returns the text of concatenated literals.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, isLeft := literal(e.X)
		right, isRight := literal(e.Y)
		if !isLeft {
			left = "…"
		}
		if !isRight {
			right = "…"
		}
		return left + right, e.Op == token.ADD && (isLeft || isRight)
	}
	return "", false
}
