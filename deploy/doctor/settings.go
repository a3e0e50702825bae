package doctor

import (
	"fmt"
	"os"
	"strings"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/endpoint"
	gateway "github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/deploy/settings"
)

// settings checks whether the environment can be read as the services
// do, and for misspelled settings.
func (e *examination) settings() {
	var err error
	if e.catalogue, err = catalogue(); err != nil {
		e.report.add(Fail, "settings", "catalogue", err.Error(), "Report it: no setting causes it.")
	}
	if e.services, err = allinone.ModulesFromEnvironment(); err != nil {
		e.report.add(Fail, "settings", "environment", err.Error(), "Correct the setting: services with it don't start. --help of each shows what it can be.")
	} else {
		e.report.add(OK, "settings", "environment", "every module can read its settings", "")
	}
	known := variables(e.catalogue)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if meant, misspelled := known.nearest(name); misspelled {
			e.report.add(Warn, "settings", name, "it is no setting", fmt.Sprintf("Is %s meant? It is not set by this.", meant))
		}
	}
}

// secretVariables returns those of settings that a file may hold.
func secretVariables(all []settings.Setting) (names []string) {
	for _, s := range all {
		if s.Secret && s.Variable != "" {
			names = append(names, s.Variable)
		}
	}
	return names
}

// catalogue returns every setting of every service.
func catalogue() (all []settings.Setting, err error) {
	modules := allinone.Modules{}
	for _, of := range []any{&allinone.Config{}, &modules.Ingest, &modules.Ledger, &modules.Grouping, &modules.Tenants, &gateway.Config{}, &Config{}} {
		found, err := settings.Of(of)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// names is a set of variables.
type names map[string]bool

func variables(all []settings.Setting) names {
	known := names{endpoint.MigratingDatabase: true}
	for _, s := range all {
		known[s.Variable] = true
	}
	for _, m := range modules {
		known[endpoint.DatabaseOf(m.name)], known[endpoint.MigratingDatabaseOf(m.name)], known[endpoint.ReplicaOf(m.name)] = true, true, true
	}
	return known
}

// maxTypos is the largest distance of a misspelled name, in characters.
const maxTypos = 2

// nearest finds the setting that a name resembles.
func (n names) nearest(name string) (meant string, misspelled bool) {
	plain := strings.TrimSuffix(name, "_FILE")
	if !strings.HasPrefix(name, "WEIR") || n[name] || n[plain] {
		return "", false
	}
	for _, known := range sorted(n) {
		if known != "" && distance(plain, known) <= maxTypos {
			return known, true
		}
	}
	return "", false
}

// distance returns how many characters have to be inserted, removed
// or replaced (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
