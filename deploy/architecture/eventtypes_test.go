package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// eventConsumers are the packages that handle an event type, by its
// constant in shared/contract. All others ignore it.
var eventConsumers = map[string][]string{
	"TypeLogsAccepted":           {"shared/contract"}, // by ParseLogsAccepted, which ingest, ledger and grouping call
	"TypeCredentialChanged":      {"shared/identity", "tenants/internal/bus"},
	"TypeCredentialsCompared":    {"shared/identity"},
	"TypeAccountChanged":         {"ingest/internal/bus", "ledger/internal/bus", "tenants/internal/bus"},
	"TypeAccountsCounted":        {"ingest/internal/bus"},
	"TypeOrganizationCreated":    {"ledger/internal/bus", "tenants/internal/bus"}, // tenants keeps it when it takes facts back
	"TypeOrganizationRenamed":    nil,
	"TypeProjectCreated":         {"shared/identity"},
	"TypeProjectRenamed":         {"shared/identity"},
	"TypeAPIKeyIssued":           nil,
	"TypeAPIKeyRevoked":          nil,
	"TypeDeletionRequested":      {"shared/identity"},
	"TypeDeletionCancelled":      {"shared/identity"},
	"TypeDeletionBegun":          {"shared/erasure", "shared/identity", "ledger/internal/bus"},
	"TypeDeletionFinished":       {"shared/identity"},
	"TypeThresholdReached":       nil,
	"TypeQuotaExhausted":         nil,
	"TypeQuotaRestored":          nil,
	"TypeOverageBegun":           nil,
	"TypeTierChanged":            nil,
	"TypeGrantExpiring":          nil,
	"TypeGrantExpired":           nil,
	"TypePeriodClosed":           nil,
	"TypeAdjusted":               nil,
	"TypeStatementReady":         nil,
	"TypeBudgetThresholdReached": nil,
	"TypeBudgetExhausted":        nil,
	"TypeBudgetRestored":         nil,
	"TypeErrorGroupCreated":      nil,
	"TypeHolderChanged":          {"shared/identity", "tenants/internal/bus"},
	"TypeErased":                 {"tenants/internal/bus"},
	"TypeKeyUsed":                {"tenants/internal/bus"},
	"TypeKeyExposed":             {"tenants/internal/bus"},
	"TypeRequestsCounted":        {"ledger/internal/bus"},
	"TypeQuotaRefused":           {"ledger/internal/bus"},
}

// Each event type is consumed exactly where eventConsumers lists it: a
// new type needs a decision.
func TestEventTypesHaveTheirConsumers(t *testing.T) {
	declared, found := map[string]bool{}, map[string][]string{}
	for _, p := range all(t) {
		if isForTests(p.ImportPath) || module(p.ImportPath) == "deploy" {
			continue
		}
		path := strings.TrimPrefix(p.ImportPath, prefix)
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if path == "shared/contract" && name == "event.go" {
				declared = declaredTypes(file)
			}
			for _, constant := range comparedIn(file) {
				if !slices.Contains(found[constant], path) {
					found[constant] = append(found[constant], path)
				}
			}
		}
	}
	if want := slices.Sorted(maps.Keys(eventConsumers)); !slices.Equal(slices.Sorted(maps.Keys(declared)), want) {
		t.Fatalf("declared are %v, with consumers %v", slices.Sorted(maps.Keys(declared)), want)
	}
	for constant := range declared {
		if !slices.Equal(found[constant], eventConsumers[constant]) {
			t.Errorf("%s is consumed by %q, want %q", constant, found[constant], eventConsumers[constant])
		}
	}
}

// declaredTypes returns the constants of a file whose names begin with Type.
func declaredTypes(file *ast.File) map[string]bool {
	types := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Type") {
			types[spec.Names[0].Name] = true
		}
		return true
	})
	return types
}

// comparedIn returns the names beginning with Type that a file compares
// something with, in a case or by an operator.
func comparedIn(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		var operands []ast.Expr
		switch n := n.(type) {
		case *ast.CaseClause:
			operands = n.List
		case *ast.BinaryExpr:
			operands = []ast.Expr{n.X, n.Y}
		}
		for _, operand := range operands {
			if name := nameOf(operand); strings.HasPrefix(name, "Type") {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}
