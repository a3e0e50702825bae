package kubernetes

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// others are variables of libraries: of libpq, and of OpenTelemetry.
var others = []string{"PGSSLMODE", "PGSSLROOTCERT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// addresses are the variables that `weir migrate` itself looks up.
var addresses = regexp.MustCompile(`^WEIR_(INGEST|LEDGER|GROUPING|TENANTS)_(MIGRATE_)?DATABASE_URL_FILE$`)

// A setting is a line of the page of all settings.
type setting struct {
	secret   bool
	programs []string
}

// settings returns those of the page, which a test of deploy/cmd/weir
// compares with the programs.
func settings(t *testing.T) map[string][]setting {
	t.Helper()
	known := map[string][]setting{}
	line := regexp.MustCompile("(?m)^\\| `(WEIR_\\w+)` \\| [^|]* \\| ([^|]*) \\| [^|]* \\| ([^|]*) \\|")
	for _, match := range line.FindAllStringSubmatch(string(read(t, "../docs/settings.md")), -1) {
		known[match[1]] = append(known[match[1]], setting{match[2] == "secret", strings.Split(match[3], ", ")})
	}
	if len(known) < 100 {
		t.Fatalf("only %d settings are read from the page", len(known))
	}
	return known
}

// takes reports whether a program takes a variable: for a secret also
// the one with _FILE that names a file.
func takes(known map[string][]setting, program, variable string) bool {
	of := func(s setting) bool { return slices.Contains(s.programs, program) }
	name, isFile := strings.CutSuffix(variable, "_FILE")
	return slices.ContainsFunc(known[variable], of) ||
		isFile && slices.ContainsFunc(known[name], func(s setting) bool { return s.secret && of(s) })
}

// Each variable is a setting of its program.
func TestSettingsAreKnown(t *testing.T) {
	known := settings(t)
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			program := w.name
			if !w.serves {
				program = "weir"
			}
			for _, variable := range w.container().Env {
				isAddress := !w.serves && addresses.MatchString(variable.Name)
				if !isAddress && !slices.Contains(others, variable.Name) && !takes(known, program, variable.Name) {
					t.Errorf("%s has no setting %s", w.name, variable.Name)
				}
				if variable.Value == "" {
					t.Errorf("%s: %s is empty", w.name, variable.Name)
				}
			}
		}
	})
}

const secrets = "/run/secrets/"

// Secrets are only in files: each one that a variable names exists, and
// none exists that no variable names.
func TestSecretsAreFiles(t *testing.T) {
	known := settings(t)
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			files := secretFiles(w)
			for _, variable := range w.container().Env {
				if slices.ContainsFunc(known[variable.Name], func(s setting) bool { return s.secret }) {
					t.Errorf("%s shows the secret %s", w.name, variable.Name)
				}
				file, isSecret := strings.CutPrefix(variable.Value, secrets)
				if !isSecret {
					continue
				}
				if files[file] == "" {
					t.Errorf("%s is not given %s", w.name, variable.Value)
				}
				delete(files, file)
			}
			for file := range files {
				t.Errorf("%s is given %s, and no variable names it", w.name, file)
			}
		}
	})
}

// No program gets another module's database, or user at the brokers.
func TestSecretsAreOfOneModule(t *testing.T) {
	ofOne := []string{"database_url", "owner_database_url", "replica_database_url", "brokers_password", "brokers_certificate", "brokers_key"}
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			for file, secret := range secretFiles(w) {
				if slices.Contains(ofOne, file) && !strings.Contains(secret, strings.TrimPrefix(w.name, "migrate-")) {
					t.Errorf("%s has its %s from %s", w.name, file, secret)
				}
			}
		}
	})
}

// If a job migrates, the service doesn't have the role that owns its
// schema, whatever the file's name.
func TestOwnersAreOfJobsAlone(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		pods := workloads(t, weir)
		owners := map[string]bool{}
		for _, w := range pods {
			owners[secretFiles(w)["owner_database_url"]] = true
		}
		delete(owners, "")
		for _, w := range pods {
			for file, secret := range secretFiles(w) {
				if w.serves && owners[secret] {
					t.Errorf("%s has the owner's %s as %s", w.name, secret, file)
				}
			}
		}
	})
}

// secretFiles returns the files under /run/secrets, with their Secrets.
func secretFiles(w workload) map[string]string {
	files := map[string]string{}
	for _, volume := range w.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				files[item.Path] = source.Secret.Name
			}
		}
	}
	return files
}
