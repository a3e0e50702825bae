package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
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
