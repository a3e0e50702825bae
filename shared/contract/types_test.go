package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
)

// eventTypes returns the values of all constants whose names begin with Type.
func eventTypes(t *testing.T) (types []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Type") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, value)
		return false
	})
	return types
}

// Every event type has a sample, hence a golden file, and begins
// with its topic.
func TestEveryEventTypeIsKnown(t *testing.T) {
	types, known := eventTypes(t), samples()
	known[contract.TypeLogsAccepted] = nil // its golden file has another form
	if len(types) < 15 {
		t.Fatalf("found the types %q alone", types)
	}
	for _, eventType := range types {
		if _, found := known[eventType]; !found {
			t.Errorf("%s has no sample", eventType)
		}
		if !onATopic(eventType) {
			t.Errorf("%s is of no topic", eventType)
		}
	}
}

func onATopic(eventType string) bool {
	for _, topic := range contract.Topics(0, 0) {
		if what, found := strings.CutPrefix(eventType, topic.Name+"."); found && what != "" {
			return true
		}
	}
	return false
}
