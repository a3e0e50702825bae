package architecture

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rooms are the concepts of each module, and their common ground.
var rooms = map[string][]string{
	"ingest":   {"intake", "searches", "saved"},
	"grouping": {"groups"},
	"tenants":  {"keys", "people", "signin", "registry", "audit", "notifications"},
	"ledger":   {"accounts", "balances", "booking", "budgets", "forecasts", "grants", "integrity", "plans", "usage", "unitofwork", "snapshot"},
}

// roomsKnow are the rooms that import another one, with the reason. All
// others use interfaces of their own.
var roomsKnow = map[string]string{
	"ingest: saved -> searches":     "an alert is evaluated by a search",
	"ledger: accounts -> balances":  "an account is shown with its balance",
	"ledger: forecasts -> balances": "what would be begins with what is",
	"ledger: forecasts -> budgets":  "a dry run asks the budgets as well",
	"ledger: forecasts -> plans":    "a simulation compares subscriptions",
	"ledger: plans -> balances":     "a subscription is shown with the state of its balance",
}

// ground are the rooms that every room of their module may import.
var ground = []string{"unitofwork", "snapshot"}

// roomOf returns the concept of a module's package; "" without one.
func roomOf(importPath string) (of, room string) {
	of = module(importPath)
	room, inside := strings.CutPrefix(importPath, prefix+of+"/internal/")
	if !inside || !slices.Contains(rooms[of], room) {
		return of, ""
	}
	return of, room
}

// foreignRooms finds rooms that import one another without a reason,
// and notes the used reasons.
func foreignRooms(p goPackage, used map[string]bool) (found []string) {
	of, from := roomOf(p.ImportPath)
	if from == "" {
		return nil
	}
	for _, imported := range p.Imports {
		_, to := roomOf(imported)
		if to == "" || slices.Contains(ground, to) {
			continue
		}
		edge := fmt.Sprintf("%s: %s -> %s", of, from, to)
		if roomsKnow[edge] == "" {
			found = append(found, edge+": say why in roomsKnow, or ask by an interface")
			continue
		}
		used[edge] = true
	}
	return found
}

// Rooms do not import one another.
func TestRooms(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, p := range all(t) {
		for _, violation := range foreignRooms(p, used) {
			t.Error(violation)
		}
		of, room := roomOf(p.ImportPath)
		seen[of+"/"+room] = true
	}
	for of := range rooms {
		for _, room := range rooms[of] {
			if !seen[of+"/"+room] {
				t.Errorf("there is no room %s of %s", room, of)
			}
		}
	}
	for edge := range roomsKnow {
		if !used[edge] {
			t.Errorf("%s is imported no more", edge)
		}
	}
}

// A breach is found, and what is allowed is not.
func TestBreachesOfRoomsAreFound(t *testing.T) {
	const tenants, ledger = prefix + "tenants/internal/", prefix + "ledger/internal/"
	for _, c := range []struct {
		from, to string
		want     int
	}{
		{tenants + "keys", tenants + "audit", 1}, {tenants + "keys", tenants + "unitofwork", 0},
		{ledger + "budgets", ledger + "grants", 1}, {ledger + "plans", ledger + "balances", 0}, {ledger + "services", ledger + "plans", 0},
	} {
		if found := foreignRooms(goPackage{ImportPath: c.from, Imports: []string{c.to}}, map[string]bool{}); len(found) != c.want {
			t.Errorf("%s on %s: %q", c.from, c.to, found)
		}
	}
}

// A goPackage is a package in the output of `go list -json`.
type goPackage struct {
	ImportPath string
	Dir        string
	Name       string
	GoFiles    []string
	Imports    []string
	Deps       []string // Imports and theirs, recursively
}

const prefix = "github.com/weirlog/weir/"

// module returns the module of a package of ours, such as ledger; ""
// for all others.
func module(importPath string) string {
	rest, ours := strings.CutPrefix(importPath, prefix)
	if !ours {
		return ""
	}
	room, _, _ := strings.Cut(rest, "/")
	return room
}

// middle are the modules between shared and deploy. They communicate
// only by events.
var middle = []string{"ingest", "ledger", "grouping", "tenants"}

// testLibraries are only for tests: packages, and folders of them.
var testLibraries = []string{prefix + "shared/testenv", "github.com/getkin/kin-openapi"}

// isBenchmark reports whether a package is of the program that measures.
func isBenchmark(importPath string) bool {
	return strings.HasPrefix(importPath+"/", prefix+"deploy/bench/")
}

// heavy finds programs that import a library for tests, directly or not.
func heavy(p goPackage) (found []string) {
	if p.Name != "main" || module(p.ImportPath) == "" || isBenchmark(p.ImportPath) || isForTests(p.ImportPath) {
		return nil
	}
	for _, to := range p.Deps {
		if slices.ContainsFunc(testLibraries, func(library string) bool { return to == library || strings.HasPrefix(to, library+"/") }) {
			found = append(found, fmt.Sprintf("the program %s stands on %s, which is for tests", p.ImportPath, to))
		}
	}
	return found
}

// servers are libraries that serve in tests, with the packages for tests
// that may import them: all tests that import such a package link them.
var servers = map[string][]string{
	prefix + "shared/embedded/kafka":     {"shared/testenv/kafkatest", "shared/bus/bustest", "deploy/allinone/allinonetest"},
	"github.com/twmb/franz-go/pkg/kfake": {"shared/bus/bustest"},
}

// serverless finds packages for tests with an unexpected server: with
// PostgreSQL, a test gets no broker.
func serverless(p goPackage) (found []string) {
	if !isForTests(p.ImportPath) {
		return nil
	}
	for _, to := range p.Deps {
		if bring, serves := servers[to]; serves && !slices.Contains(bring, strings.TrimPrefix(p.ImportPath, prefix)) {
			found = append(found, fmt.Sprintf("%s stands on %s: only %s bring it to tests", p.ImportPath, to, strings.Join(bring, ", ")))
		}
	}
	return found
}

func isForTests(importPath string) bool {
	return slices.ContainsFunc(strings.Split(importPath, "/"), func(part string) bool {
		return part == "testenv" || strings.HasSuffix(part, "test")
	})
}
