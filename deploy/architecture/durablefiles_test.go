package architecture

import (
	"go/ast"
	"testing"
)

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
