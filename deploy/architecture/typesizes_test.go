package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

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
	"ledger.Books":                    "what can be decided about an organization holds for all of its books together",
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
	allowed, text := map[string]bool{}, strings.ReplaceAll(text, "*Service", "*Books[T]")+"func (b Books[T]) More() {}"
	if found := crowded(prefix+"ledger", parsed(t, text), allowed); len(found) != 0 || !allowed["ledger.Books"] {
		t.Errorf("one that may: %q", found)
	}
}
