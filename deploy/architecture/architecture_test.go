package architecture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// all lists every package of the workspace.
func all(t *testing.T) []goPackage {
	t.Helper()
	packages, err := workspace()
	testenv.Must(t, err)
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
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,GoFiles,Imports,Deps")
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

// Programs don't link what is for tests, nor tests a server they don't
// need. Which package may import which is checked by depguard, in
// .golangci.yml.
func TestNothingForTestsIsLinked(t *testing.T) {
	for _, p := range all(t) {
		for _, violation := range append(heavy(p), serverless(p)...) {
			t.Error(violation)
		}
	}
}

func TestWhatIsForTestsIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		p    goPackage
		want string
	}{
		"a database":                 {goPackage{ImportPath: prefix + "shared/testenv/postgrestest", Deps: []string{"github.com/jackc/pgx/v5"}}, ""},
		"a broker":                   {goPackage{ImportPath: prefix + "shared/testenv/kafkatest", Deps: []string{prefix + "shared/embedded/kafka"}}, ""},
		"a database and a broker":    {goPackage{ImportPath: prefix + "shared/testenv/postgrestest", Deps: []string{prefix + "shared/embedded/kafka"}}, "only shared/testenv/kafkatest"},
		"a program on a validator":   {goPackage{ImportPath: prefix + "ledger/cmd/ledger", Name: "main", Deps: []string{"github.com/getkin/kin-openapi/openapi3"}}, "for tests"},
		"a program on testenv below": {goPackage{ImportPath: prefix + "deploy/cmd/weir", Name: "main", Deps: []string{prefix + "shared/testenv/apache"}}, "for tests"},
	} {
		t.Run(name, func(t *testing.T) {
			found := strings.Join(append(heavy(test.p), serverless(test.p)...), "\n")
			if (test.want == "") != (found == "") || !strings.Contains(found, test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}
