package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// A goPackage is a package in the output of `go list -json`.
type goPackage struct {
	ImportPath   string
	Dir          string
	Name         string
	GoFiles      []string
	Imports      []string
	Deps         []string // Imports and theirs, recursively
	TestImports  []string
	XTestImports []string
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

const busPath = prefix + "shared/bus"

// busParts are the parts of the bus that each part may import directly;
// all may import the bus itself, which imports none of them.
var busParts = map[string][]string{
	"":                {},
	"internal/wire":   {},
	"internal/clock":  {},
	"internal/budget": {},
	"internal/batch":  {"internal/wire"},
	"internal/broker": {"internal/batch", "internal/clock", "internal/wire"},
	"internal/follow": {"internal/batch", "internal/broker", "internal/budget", "internal/clock", "internal/wire"},
	"cluster":         {"internal/broker"},
	"topics":          {"internal/broker", "internal/clock"},
	"parked":          {},
	"publisher":       {"internal/batch", "internal/broker", "internal/budget", "internal/clock", "internal/wire"},
	"consumer": {"consumer/internal/deferred", "consumer/internal/lanes", "consumer/internal/positions", "consumer/internal/status",
		"consumer/internal/transaction", "internal/broker", "internal/clock", "internal/follow", "internal/wire", "parked"},
	"consumer/internal/deferred":    {"consumer/internal/lanes", "internal/batch", "internal/broker", "internal/wire"},
	"consumer/internal/lanes":       {"internal/batch", "internal/clock", "internal/wire"},
	"consumer/internal/positions":   {"consumer/internal/lanes", "internal/broker", "internal/wire"},
	"consumer/internal/status":      {"consumer/internal/lanes", "internal/broker", "internal/clock"},
	"consumer/internal/transaction": {"consumer/internal/lanes", "consumer/internal/positions", "consumer/internal/status", "internal/clock"},
	"state":                         {"internal/broker", "internal/clock", "internal/follow", "internal/wire", "logrange"},
	"logrange":                      {"internal/broker", "internal/follow"},
	"logend":                        {"internal/batch", "internal/broker", "internal/clock", "logrange"},
	"relay":                         {"internal/clock", "logrange", "publisher"},
}

// busPart returns a package's part of the bus; its tests and bustest
// may import all of it.
func busPart(importPath string) (part string, ours bool) {
	rest, ours := strings.CutPrefix(importPath, busPath)
	return strings.TrimPrefix(rest, "/"), ours && (rest == "" || rest[0] == '/') && !isForTests(importPath)
}

// throughTheBus finds imports against busParts.
func throughTheBus(p goPackage) (found []string) {
	from, ours := busPart(p.ImportPath)
	if !ours {
		return nil
	}
	allowed, known := busParts[from]
	if !known {
		return []string{fmt.Sprintf("%s is no part of the bus that busParts names", p.ImportPath)}
	}
	for _, to := range p.Imports {
		if part, ours := busPart(to); ours && part != "" && !slices.Contains(allowed, part) {
			found = append(found, fmt.Sprintf("%s imports %s: busParts does not say so", p.ImportPath, to))
		}
	}
	return found
}

// forTests finds programs that import what is for tests: testenv, and
// the packages whose names end in test.
func forTests(p goPackage) (found []string) {
	if isBenchmark(p.ImportPath) || isForTests(p.ImportPath) {
		return nil
	}
	for _, to := range p.Imports {
		if to == "testing" || module(to) != "" && isForTests(to) {
			found = append(found, fmt.Sprintf("%s imports %s, which is for tests and benchmarks", p.ImportPath, to))
		}
	}
	return found
}

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
