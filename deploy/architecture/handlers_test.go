package architecture

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// givenRoutes is the type whose Mount only mounts handlers given to it.
const givenRoutes = "Kit"

// mounts reports whether files hold handlers: a function or method mounts them.
func mounts(files []*ast.File) bool {
	return slices.ContainsFunc(files, func(file *ast.File) bool {
		return slices.ContainsFunc(file.Decls, func(declaration ast.Decl) bool {
			function, ok := declaration.(*ast.FuncDecl)
			return ok && strings.HasPrefix(function.Name.Name, "Mount") && (function.Recv == nil || receiver(function) != givenRoutes)
		})
	})
}

// triesRoutes reports whether a package's TestMain fails if a
// route isn't tried.
func triesRoutes(t *testing.T, p goPackage) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, "main_test.go"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "os.Exit(routetest.Main(m))")
}

// untriedHandlers finds a package whose handlers may lack tests beside them.
func untriedHandlers(p goPackage, files []*ast.File, tries bool) (found []string) {
	if slices.Contains(middle, module(p.ImportPath)) && mounts(files) && !tries {
		found = append(found, fmt.Sprintf("%s mounts handlers: its main_test.go has to end with routetest.Main, so that its own tests try each of them", p.ImportPath))
	}
	return found
}

// Each route of a concept is tried by tests beside it, not only through
// the whole service.
func TestHandlersAreTriedBesideThem(t *testing.T) {
	serves := 0
	for _, p := range all(t) {
		files := syntax(t, p)
		for _, violation := range untriedHandlers(p, files, triesRoutes(t, p)) {
			t.Error(violation)
		}
		if mounts(files) {
			serves++
		}
	}
	if least := len(tenantRooms) + len(middle); serves < least {
		t.Errorf("%d packages with handlers found, at least %d have some", serves, least)
	}
}

// A package whose tests may leave its handlers untried is found.
func TestUntriedHandlersAreFound(t *testing.T) {
	room := goPackage{ImportPath: prefix + "tenants/internal/keys"}
	for text, want := range map[string]int{
		"func (a *API) Mount(router chi.Router) {}":        1,
		"func (p Pages) MountOpen(router chi.Router) {}":   1,
		"func (k *Kit) Mount(router chi.Router) {}":        0,
		"func (p Pages) show(w http.ResponseWriter) {}":    0,
		"func Mount(router chi.Router, config Config) {}":  1,
		"func (l LeakReports) Mount(router chi.Router) {}": 1,
	} {
		files := []*ast.File{syntaxOf(t, "package p\n"+text)}
		if found := untriedHandlers(room, files, false); len(found) != want {
			t.Errorf("%s: %q", text, found)
		}
		if found := untriedHandlers(room, files, true); len(found) != 0 {
			t.Errorf("%s, which is tried: %q", text, found)
		}
	}
}

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
