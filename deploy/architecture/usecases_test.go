package architecture

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// servicesOf finds the types that hold use cases: one Service, or
// Services if a room has several.
func servicesOf(files []*ast.File) (found []string) {
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && (spec.Name.Name == "Service" || spec.Name.Name == "Services") {
				found = append(found, spec.Name.Name)
			}
			return true
		})
	}
	return found
}

// assembles reports whether a package assembles the services of
// its module's rooms.
func assembles(importPath string) bool { return importPath == prefix+"ledger/internal/services" }

// outsideRooms finds use cases outside the rooms, and rooms without any.
func outsideRooms(p goPackage, files []*ast.File) (found []string) {
	of, room := roomOf(p.ImportPath)
	services := servicesOf(files)
	switch {
	case !slices.Contains(middle, of) || isForTests(p.ImportPath) || assembles(p.ImportPath) || slices.Contains(ground, room):
	case room == "" && len(services) > 0:
		found = append(found, fmt.Sprintf("%s has a %s: use cases lie in a room of their noun, which rooms names", p.ImportPath, services[0]))
	case room != "" && len(services) == 0:
		found = append(found, fmt.Sprintf("the room %s has no Service", p.ImportPath))
	}
	return found
}

// Use cases have one home with one name in every module: the Service of a room.
func TestUseCasesLieInRooms(t *testing.T) {
	for _, p := range all(t) {
		if strings.Contains(p.ImportPath, "/internal/") {
			for _, violation := range outsideRooms(p, syntax(t, p)) {
				t.Error(violation)
			}
		}
	}
}

// A use case outside the rooms and an empty room are found, and a room is not.
func TestUseCasesOutsideOfRoomsAreFound(t *testing.T) {
	const service, none = "package p\ntype Service struct{}", "package p"
	for _, c := range []struct {
		at, text string
		want     int
	}{
		{"ingest/internal/intake", service, 0}, {"ingest/internal/service", service, 1}, {"ingest/internal/http", service, 1},
		{"grouping/internal/groups", none, 1}, {"ledger/internal/unitofwork", none, 0}, {"tenants/internal/signin", "package p\ntype Services struct{}", 0},
		{"ledger/internal/services", service, 0}, {"ingest/internal/uncounted", none, 0},
	} {
		if found := outsideRooms(goPackage{ImportPath: prefix + c.at}, []*ast.File{syntaxOf(t, c.text)}); len(found) != c.want {
			t.Errorf("%s: %q", c.at, found)
		}
	}
}
