package errorcodes

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
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
	if strings.Trim(text, "….") == "" {
		return ""
	}
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

const introduction = `# Error codes

Every ` + "`code`" + ` that the API answers with, made from the source by ` + "`make docs`" + `: with which status, what is said and what to do. A code never
changes its meaning and is never renamed; what is said may. Where no status stands, the code is of one entry or member, in ` + "`errors[]`" + `.
"…" is a value of the request.

| Code | Status | From | What is said, and what to do |
|---|---|---|---|
`

// Write writes the answers as a page of Markdown, a row for each code.
func Write(w io.Writer, answers []Answer) error {
	var page strings.Builder
	page.WriteString(introduction)
	for len(answers) > 0 {
		n := slices.IndexFunc(answers, func(a Answer) bool { return a.Code != answers[0].Code })
		if n < 0 {
			n = len(answers)
		}
		writeRow(&page, answers[:n])
		answers = answers[n:]
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func writeRow(page *strings.Builder, same []Answer) {
	var statuses, from, texts []string
	for _, a := range same {
		if a.Status != 0 {
			statuses = append(statuses, strconv.Itoa(a.Status))
		}
		from = append(from, cmp.Or(map[string]string{"shared": "every module"}[a.Module], a.Module))
		if text := strings.TrimSpace(a.Detail + " " + a.Fix); text != "" {
			texts = append(texts, cell(text))
		}
	}
	if text := composed[same[0].Code]; text != "" {
		texts = []string{text}
	}
	fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", same[0].Code, unique(statuses, ", "), unique(from, ", "), unique(texts, "<br>"))
}

// composed stands for what is said with a code where that is put together for each answer.
var composed = map[string]string{ // bounded by its literal
	"invalid_entries": "No entry is valid, or one is not and the request wants all or none. Nothing was stored. Repair what errors[] lists, and send it again.",
	"limit_reached":   "There are as many of these as the organization may have: limit says how many. Remove one, or have the operator raise the setting.",
	"quota_exceeded":  "The quota, or a budget of the project or key, does not cover the request; or the organization is suspended. See quota and resets_at.",
	"unavailable":     "Something that the service needs can't be reached now. Send the whole request again after the time in Retry-After.",
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

// unique joins texts, each once, in their order.
func unique(texts []string, separator string) string {
	var once []string
	for _, text := range texts {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return strings.Join(once, separator)
}
