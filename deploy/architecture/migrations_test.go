package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// contracting is what programs of the version before can't live with; a column
// that must have a value, and has none by default, is found apart.
var contracting = regexp.MustCompile(`(?i)\b(DROP\s+(TABLE|COLUMN|VIEW|FUNCTION|SCHEMA)|RENAME\s+(TO|COLUMN|CONSTRAINT)|SET\s+NOT\s+NULL|(DATA\s+)?TYPE\s+\w+\s+USING)\b`)

var (
	addedColumn = regexp.MustCompile(`(?is)\bADD\s+COLUMN\b[^,;]*`)
	mandatory   = regexp.MustCompile(`(?i)\bNOT\s+NULL\b`)
	hasDefault  = regexp.MustCompile(`(?i)\b(DEFAULT|GENERATED)\b`)
	idle        = regexp.MustCompile(`(?is)--[^\n]*|\bAS\s+\$\w*\$.*?\$\w*\$`) // comments, and functions' bodies
)

// mayContract are migrations that take away what no program of the version
// before uses any more, with the reason.
var mayContract = map[string]string{}

// Migrations since the last version expand (deploy/docs/upgrade.md), and those
// that it has are not edited: only files are added, or moved as they are.
// `make test-upgrade` has both versions at work.
func TestMigrationsExpand(t *testing.T) {
	from := lastVersion(t)
	changed, err := git("diff", "--name-status", "-M100%", from, "--", ":(glob)**/migrations/*.sql")
	if err != nil {
		t.Fatalf("migrations can't be compared with those of %s, which this clone may lack (git fetch --unshallow --tags): %v", from, err)
	}
	for line := range strings.Lines(changed) {
		fields := strings.Fields(line)
		switch status, file := fields[0], fields[len(fields)-1]; status {
		case "A":
			text, err := os.ReadFile(filepath.Join("../..", file))
			if err != nil {
				t.Fatal(err)
			}
			if what := contracts(string(text)); what != "" && mayContract[file] == "" {
				t.Errorf("%s: %q is more than programs of %s live with: take it away a version later, and name it in mayContract", file, what, from)
			}
		case "R100":
		default:
			t.Errorf("%s is part of %s, where it is applied already: add a file instead", file, from)
		}
	}
}

// contracts finds the statement of a migration that takes something away.
func contracts(migration string) string {
	migration = idle.ReplaceAllString(migration, "")
	if what := contracting.FindString(migration); what != "" {
		return what
	}
	for _, column := range addedColumn.FindAllString(migration, -1) {
		if mandatory.MatchString(column) && !hasDefault.MatchString(column) {
			return column
		}
	}
	return ""
}

func TestContractingIsFound(t *testing.T) {
	for migration, found := range map[string]bool{
		"ALTER TABLE a ADD COLUMN b int;":                                                                      false,
		"ALTER TABLE a ADD COLUMN b int NOT NULL DEFAULT 0;":                                                   false,
		"ALTER TABLE a ADD COLUMN b int NOT NULL;":                                                             true,
		"ALTER TABLE a ADD COLUMN b int NOT NULL, ADD COLUMN c int DEFAULT 1;":                                 true,
		"ALTER TABLE a ALTER COLUMN b SET NOT NULL;":                                                           true,
		"ALTER TABLE a\n\tDROP COLUMN b;":                                                                      true,
		"-- to DROP TABLE a is for later\nCREATE TABLE b (c int NOT NULL);":                                    false,
		"CREATE FUNCTION a() RETURNS void AS $body$ BEGIN EXECUTE 'DROP TABLE b'; END $body$ LANGUAGE plpgsql": false,
		"drop table a;":                       true,
		"ALTER TABLE a RENAME COLUMN b TO c;": true,
		"ALTER TABLE a ALTER COLUMN b TYPE bigint USING b::bigint;":                 true,
		"DROP INDEX a; CREATE INDEX b ON c (d);":                                    false,
		"ALTER TABLE a DROP CONSTRAINT b, ADD CONSTRAINT b CHECK (c > 0) NOT VALID": false,
	} {
		if got := contracts(migration) != ""; got != found {
			t.Errorf("%q: found %t", migration, got)
		}
	}
}

// lastVersion is the last tag; until there is one, what make test-upgrade
// begins with.
func lastVersion(t *testing.T) string {
	t.Helper()
	if tag, err := git("describe", "--tags", "--abbrev=0", "HEAD^"); err == nil {
		return tag
	}
	commit, err := os.ReadFile("../e2e/testdata/upgrade-from")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(commit))
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
