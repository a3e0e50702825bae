package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wantSentences describe a package: what it is, and what it may touch.
// More belong in its README.
const wantSentences = 2

// sentenceEnd ends a sentence. Abbreviations and names such as doc.go
// have no space after their dot.
var sentenceEnd = regexp.MustCompile(`[.!?]["”)]*(\s|$)`)

// sentences counts the sentences of a comment, without indented blocks.
func sentences(comment string) (n int) {
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		if !strings.HasPrefix(paragraph, "\t") {
			n += len(sentenceEnd.FindAllString(paragraph, -1))
		}
	}
	return n
}

// undocumented returns what is wrong with a package's doc.go.
func undocumented(importPath, name string, file *ast.File) []string {
	comment := file.Doc.Text()
	start := "Package " + name + " "
	if name == "main" {
		start = "Command " + filepath.Base(importPath) + " "
	}
	if !strings.HasPrefix(comment, start) {
		return []string{fmt.Sprintf("%s/doc.go has no comment that begins with %q", importPath, start)}
	}
	if n := sentences(comment); n != wantSentences {
		return []string{fmt.Sprintf("%s/doc.go has %d sentences, want %d: what the package is, and what it may touch", importPath, n, wantSentences)}
	}
	return nil
}

// Every package has a doc.go with two sentences on what it is and what
// it may touch, and no second package comment.
func TestPackagesAreDocumented(t *testing.T) {
	for _, p := range all(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "doc.go")); err != nil {
			t.Errorf("%s has no doc.go", p.ImportPath)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(name) != "doc.go" {
				if file.Doc != nil {
					t.Errorf("%s has a package comment: it belongs into doc.go", name)
				}
				continue
			}
			for _, violation := range undocumented(p.ImportPath, p.Name, file) {
				t.Error(violation)
			}
		}
	}
}

// A comment that is missing, of another package, too short or too
// long is found.
func TestMissingDocumentationIsFound(t *testing.T) {
	for source, faults := range map[string]int{
		"package p": 1,
		"// Package q is q. It touches nothing.\npackage p":                            1,
		"// Package p is p.\npackage p":                                                1,
		"// Package p is p. A. B. C. D.\npackage p":                                    1,
		"// Package p is p (see doc.go). It touches\n// nothing.\npackage p":           0,
		"// Package p is p: q.\n//\n//\tcode. code. code. code.\n//\n// B!\npackage p": 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "doc.go", source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if found := undocumented("p", "p", file); len(found) != faults {
			t.Errorf("%q: found %q", source, found)
		}
	}
}

// maxMethods is how many methods a type may have: exported ones, and of
// a service all.
const maxMethods = 12

// counts reports whether a method counts for the size of its type.
func counts(method *ast.FuncDecl) bool {
	return method.Name.IsExported() || receiver(method) == "Service"
}

// largeTypes may have more methods than maxMethods, with the reason.
var largeTypes = map[string]string{
	"deploy/client.Client":            "one for each route of the API",
	"ingest/internal/admission.Gate":  "what a request is admitted by changes under one lock",
	"tenants/internal/people.Store":   "a store has one for each question",
	"tenants/internal/registry.Store": "a store has one for each question",
}

// crowded finds types of a package with too many methods, and
// notes allowed ones.
func crowded(importPath string, read source, allowed map[string]bool) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(read.methods)) {
		methods, of := read.methods[name], strings.TrimPrefix(importPath, prefix)+"."+name
		switch {
		case methods <= maxMethods:
		case largeTypes[of] != "":
			allowed[of] = true
		default:
			found = append(found, fmt.Sprintf("%s has %d methods, at most %d: split it, or say why in largeTypes", of, methods, maxMethods))
		}
	}
	return found
}

// Services, and all other types, stay small enough to be read at one sitting.
func TestTypesStaySmall(t *testing.T) {
	allowed := map[string]bool{}
	for _, p := range all(t) {
		if isForTests(p.ImportPath) {
			continue
		}
		for _, violation := range crowded(p.ImportPath, readSource(t, p), allowed) {
			t.Error(violation)
		}
	}
	for name := range largeTypes {
		if !allowed[name] {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

// A type with too many methods is found, in any module, and an allowed
// one is noted.
func TestLargeTypesAreFound(t *testing.T) {
	text := "package p\n"
	for i := range maxMethods {
		text += fmt.Sprintf("func (s *Service) M%d() {}\n", i)
	}
	for _, module := range append([]string{"shared", "deploy"}, middle...) {
		if found := crowded(prefix+module, parsed(t, text), nil); len(found) != 0 {
			t.Errorf("as many methods as there may be: %q", found)
		}
		if found := crowded(prefix+module, parsed(t, text+"func (s Service) More() {}"), nil); len(found) != 1 {
			t.Errorf("one method more: %q", found)
		}
	}
	for name, want := range map[string]int{"Service": 1, "Other": 0} {
		if found := crowded(prefix+"ledger", parsed(t, strings.ReplaceAll(text, "Service", name)+"func (s "+name+") more() {}"), nil); len(found) != want {
			t.Errorf("one more of %s that is not exported: %q", name, found)
		}
	}
	allowed, text := map[string]bool{}, strings.ReplaceAll(text, "*Service", "*Client[T]")+"func (c Client[T]) More() {}"
	if found := crowded(prefix+"deploy/client", parsed(t, text), allowed); len(found) != 0 || !allowed["deploy/client.Client"] {
		t.Errorf("one that may: %q", found)
	}
}

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

// undurable names the packages that may write files which a power cut
// leaves empty, with the reason.
var undurable = map[string]string{
	"shared/embedded/postgres": "a file that initdb reads once, and a folder without data",
	"deploy/images":            "what is built can be built again",
	"deploy/cmd/weir":          "writes pages of the repository",
	"deploy/backup":            "files that pg_dump and pg_restore read once",
}

func writesFile(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		found = found || ok && selector.Sel.Name == "WriteFile" && nameOf(selector.X) == "os"
		return !found
	})
	return found
}

// What a later start needs is written by shared/atomicfile: a power cut
// leaves a file of os.WriteFile with 0 bytes.
func TestFilesSurvivePowerCuts(t *testing.T) {
	used := map[string]bool{}
	for _, p := range all(t) {
		if isForTests(p.ImportPath) {
			continue
		}
		name := p.ImportPath[len(prefix):]
		for _, file := range syntax(t, p) {
			if !writesFile(file) {
				continue
			}
			if used[name] = true; undurable[name] == "" {
				t.Errorf("%s calls os.WriteFile: use shared/atomicfile", name)
			}
		}
	}
	for name := range undurable {
		if !used[name] {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

// largestTracked exceeds the largest source file.
const largestTracked = 1 << 20

// Build outputs are not committed: every clone would keep them forever.
func TestNothingBuiltIsTracked(t *testing.T) {
	const root = "../.."
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git cannot list the files of this clone: %v", err)
	}
	files := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	if len(files) < 1000 {
		t.Fatalf("git lists %d files: they are not read right", len(files))
	}
	for _, file := range files {
		if info, err := os.Lstat(filepath.Join(root, file)); err == nil && info.Size() > largestTracked {
			t.Errorf("%s has %d bytes: take it out of the commit and name it in .gitignore", file, info.Size())
		}
	}
}

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
