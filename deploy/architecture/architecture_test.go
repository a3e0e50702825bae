package architecture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// all lists every package of the workspace.
func all(t *testing.T) []goPackage {
	t.Helper()
	packages, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// list lists the packages of one module. `make verify` checks that each
// also builds by its own go.mod.
func list(t *testing.T, room string) []goPackage {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(all(t)), func(p goPackage) bool { return module(p.ImportPath) != room })
}

// workspace reads the packages once for all tests: the listing
// takes seconds, the rules none.
var workspace = sync.OnceValues(func() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,GoFiles,Imports,Deps,TestImports,XTestImports")
	for _, room := range append([]string{"shared", "deploy"}, middle...) {
		cmd.Args = append(cmd.Args, "./"+room+"/...")
	}
	cmd.Dir = filepath.Join("..", "..")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaints.Bytes())
	}
	var packages []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
})

// The source obeys the rules. Which module may know which, and what a
// domain may import, is checked by depguard, in .golangci.yml.
func TestRules(t *testing.T) {
	for _, p := range all(t) {
		for _, violation := range slices.Concat(forTests(p), heavy(p), serverless(p), throughTheBus(p), longMain(t, p)) {
			t.Error(violation)
		}
	}
}

// mainLines is how long a service's main.go may be: it turns the
// environment into a Config, no more.
const mainLines = 100

func longMain(t *testing.T, p goPackage) []string {
	t.Helper()
	if p.Name != "main" || !slices.Contains(middle, module(p.ImportPath)) {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(p.Dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(raw, []byte("\n")); lines >= mainLines {
		return []string{fmt.Sprintf("%s/main.go has %d lines, at most %d: the wiring belongs in app", p.ImportPath, lines, mainLines-1)}
	}
	return nil
}

// A breach of each rule is found, and allowed imports are not.
func TestBreachesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		p    goPackage
		want string
	}{
		"a test on testenv":          {goPackage{ImportPath: prefix + "ledger/app", TestImports: []string{prefix + "shared/testenv"}}, ""},
		"a database":                 {goPackage{ImportPath: prefix + "shared/testenv/postgrestest", Deps: []string{"github.com/jackc/pgx/v5"}}, ""},
		"a broker":                   {goPackage{ImportPath: prefix + "shared/testenv/kafkatest", Deps: []string{prefix + "shared/embedded/kafka"}}, ""},
		"a database and a broker":    {goPackage{ImportPath: prefix + "shared/testenv/postgrestest", Deps: []string{prefix + "shared/embedded/kafka"}}, "only shared/testenv/kafkatest"},
		"a program on testenv":       {goPackage{ImportPath: prefix + "ledger/app", Imports: []string{prefix + "shared/testenv"}}, "for tests and benchmarks"},
		"a program on a validator":   {goPackage{ImportPath: prefix + "ledger/cmd/ledger", Name: "main", Deps: []string{"github.com/getkin/kin-openapi/openapi3"}}, "for tests"},
		"a program on testenv below": {goPackage{ImportPath: prefix + "deploy/cmd/weir", Name: "main", Deps: []string{prefix + "shared/testenv/apache"}}, "for tests"},
		"deploy on package testing":  {goPackage{ImportPath: prefix + "deploy/allinone", Imports: []string{"testing"}}, "for tests and benchmarks"},
		"a consumer on parked":       {goPackage{ImportPath: busPath + "/consumer", Imports: []string{busPath, busPath + "/parked"}}, ""},
		"parked on a consumer":       {goPackage{ImportPath: busPath + "/parked", Imports: []string{busPath + "/consumer"}}, "busParts does not say so"},
		"the bus on a part":          {goPackage{ImportPath: busPath, Imports: []string{busPath + "/internal/clock"}}, "busParts does not say so"},
		"a part that is not named":   {goPackage{ImportPath: busPath + "/other"}, "is no part of the bus"},
	} {
		t.Run(name, func(t *testing.T) {
			found := strings.Join(slices.Concat(forTests(test.p), heavy(test.p), serverless(test.p), throughTheBus(test.p)), "\n")
			if (test.want == "") != (found == "") || !strings.Contains(found, test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}
