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

const contractPath = prefix + "shared/contract"

// contractWords are what a module may use of the contract outside of
// internal/bus and its wiring: no event, no attribute, no encoding or decoding.
var contractWords = map[string]string{
	"Positions":            "offsets by partition, as answers and account states have them",
	"GroupLedger":          "names the rows of the ledger's positions",
	"TopicLogs":            "names the rows of positions in the log",
	"OutcomeAccepted":      "a word that is counted, kept and shown",
	"OutcomeRejected":      "a word that is counted, kept and shown",
	"OutcomeRateLimited":   "a word that is counted, kept and shown",
	"OutcomeQuotaExceeded": "a word that is counted, kept and shown",
	"OutcomeOverloaded":    "a word that is counted, kept and shown",
	"ReasonSuspended":      "a word that is counted, kept and shown",
	"ReasonProjectBudget":  "a word that is counted, kept and shown",
	"ReasonKeyBudget":      "a word that is counted, kept and shown",
	"CredentialActive":     "the state that a change of a credential waits for",
	"CredentialRevoked":    "the state that a change of a credential waits for",
	"CredentialKey":        "the digest by which a report of a leak is answered",
	"Notifications":        "the facts that webhooks may ask for",
	"ErasingModules":       "who has to report a deletion",
}

// mapsContract reports whether a package may use the whole contract:
// the adapter, and its wiring.
func mapsContract(importPath string) bool {
	rest := strings.TrimPrefix(importPath, prefix+module(importPath)+"/")
	return rest == "internal/bus" || rest == "app" || strings.HasPrefix(rest, "app/")
}

func contractUses(files []*ast.File) (names []string) {
	for _, file := range files {
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+contractPath+`"` }) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && nameOf(selector.X) == "contract" {
				names = append(names, selector.Sel.Name)
			}
			return true
		})
	}
	return names
}

// mappedElsewhere finds uses of the contract that belong in
// internal/bus, and notes the words used.
func mappedElsewhere(p goPackage, files []*ast.File, used map[string]bool) (found []string) {
	if !slices.Contains(middle, module(p.ImportPath)) || mapsContract(p.ImportPath) || isForTests(p.ImportPath) {
		return nil
	}
	for _, name := range contractUses(files) {
		if contractWords[name] == "" {
			found = append(found, fmt.Sprintf("%s uses contract.%s: map it in internal/bus", p.ImportPath, name))
		}
		used[name] = true
	}
	return found
}

func syntax(t *testing.T, p goPackage) (files []*ast.File) {
	t.Helper()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func syntaxOf(t *testing.T, text string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Events are mapped onto the domain, and back, in internal/bus of each module.
func TestContractIsMappedInTheBus(t *testing.T) {
	used := map[string]bool{}
	for _, p := range all(t) {
		if !slices.Contains(p.Imports, contractPath) {
			continue
		}
		for _, violation := range mappedElsewhere(p, syntax(t, p), used) {
			t.Error(violation)
		}
	}
	for word := range contractWords {
		if !used[word] {
			t.Errorf("contract.%s is used outside of internal/bus no more", word)
		}
	}
}

// An event in a store is found; it is allowed in internal/bus, in the
// wiring and in tests, and words are allowed everywhere.
func TestMappingElsewhereIsFound(t *testing.T) {
	const event = "package p\nimport \"" + contractPath + "\"\nvar e contract.LogsAccepted"
	const word = "package p\nimport \"" + contractPath + "\"\nvar p contract.Positions"
	for _, c := range []struct {
		at, text string
		want     int
	}{
		{"ledger/internal/postgres", event, 1}, {"ledger/internal/postgres", word, 0}, {"ledger/internal/bus", event, 0}, {"ledger/app", event, 0},
		{"ledger/internal/ledgertest", event, 0}, {"shared/identity", event, 0}, {"deploy/e2e", event, 0}, {"tenants/internal/keys", event, 1},
	} {
		if found := mappedElsewhere(goPackage{ImportPath: prefix + c.at}, []*ast.File{syntaxOf(t, c.text)}, map[string]bool{}); len(found) != c.want {
			t.Errorf("%s: %q", c.at, found)
		}
	}
}
