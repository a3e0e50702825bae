package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Changes that break programs of the version before.
var (
	taking      = regexp.MustCompile(`(?is)\b(DROP\s+"?\w+|RENAME\s|SET\s+NOT\s+NULL\b|ALTER\s+(COLUMN\s+)?"?\w+"?\s+(SET\s+DATA\s+)?TYPE\b|REVOKE\s[^;]*)`)
	loosening   = regexp.MustCompile(`(?is)^(DROP\s+(INDEX|CONSTRAINT|NOT)|ALTER\s+COLUMN\s+TYPE|REVOKE\s.*\bFROM\s+PUBLIC\s*)$`)
	added       = regexp.MustCompile(`(?is)\bADD\b[^,;]*`)
	constraint  = regexp.MustCompile(`(?is)^ADD\s+(CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)\b`)
	unvalidated = regexp.MustCompile(`(?is)\bNOT\s+VALID\b`)
	mandatory   = regexp.MustCompile(`(?is)\b(NOT\s+NULL|PRIMARY\s+KEY)\b`)
	hasDefault  = regexp.MustCompile(`(?i)\b(DEFAULT|GENERATED)\b`)
)

var (
	idle     = regexp.MustCompile(`(?is)--[^\n]*|\bAS\s+\$\w*\$.*?\$\w*\$`) // comments, and bodies of functions
	brackets = regexp.MustCompile(`\([^()]*\)`)
)

// mayContract are migrations that remove what no program of the version
// before needs, or only seem to, with the reason.
var mayContract = map[string]string{}

// Migrations since the last version expand (deploy/docs/upgrade.md),
// and released ones are not edited: files are only added, or moved
// unchanged. `make test-upgrade` runs both versions.
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

// contracts finds the part of a migration that removes something. By
// its text a wider type looks like a narrower one: both are found.
func contracts(migration string) string {
	migration = idle.ReplaceAllString(migration, "")
	for _, what := range taking.FindAllString(migration, -1) {
		if !loosening.MatchString(what) {
			return what
		}
	}
	for _, what := range added.FindAllString(withoutBrackets(migration), -1) {
		if demands(what) {
			return what
		}
	}
	return ""
}

// demands reports whether a new column or constraint refuses rows from
// programs that don't know it.
func demands(what string) bool {
	if constraint.MatchString(what) {
		return !unvalidated.MatchString(what)
	}
	return mandatory.MatchString(what) && !hasDefault.MatchString(what)
}

func withoutBrackets(text string) string {
	for brackets.MatchString(text) {
		text = brackets.ReplaceAllString(text, "")
	}
	return text
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
		"drop table a;": true,
		"ALTER TABLE a ALTER COLUMN type SET DEFAULT 1; CREATE TABLE b (renamed_at text CHECK (renamed_at <> 'revoke'));": false,
		"DROP SEQUENCE a;":                                                          true,
		"ALTER TABLE a DROP b;":                                                     true,
		"ALTER TABLE a RENAME COLUMN b TO c;":                                       true,
		"ALTER TABLE a RENAME b TO c;":                                              true,
		"ALTER TABLE a ALTER COLUMN b TYPE bigint USING b::bigint;":                 true,
		"ALTER TABLE a ALTER COLUMN b TYPE varchar(3);":                             true,
		"ALTER TABLE a ALTER b SET DATA TYPE varchar(3);":                           true,
		"ALTER TABLE a ALTER COLUMN b DROP DEFAULT;":                                true,
		"ALTER TABLE a ALTER COLUMN b DROP NOT NULL;":                               false,
		"DROP INDEX a; CREATE INDEX b ON c (d);":                                    false,
		"ALTER TABLE a DROP CONSTRAINT b, ADD CONSTRAINT b CHECK (c > 0) NOT VALID": false,
		"ALTER TABLE a ADD CONSTRAINT b CHECK (f(c, 0) > 0) NOT VALID;":             false,
		"ALTER TABLE a ADD CONSTRAINT b CHECK (c > 0);":                             true,
		"ALTER TABLE a ADD CHECK (c > 0);":                                          true,
		"ALTER TABLE a ADD b int NOT NULL;":                                         true,
		"ALTER TABLE a ADD b int PRIMARY KEY;":                                      true,
		"ALTER TABLE a ADD COLUMN b numeric(10,2) NOT NULL;":                        true,
		"ALTER TABLE a ADD b numeric(10, 2) NOT NULL DEFAULT round(1, 2);":          false,
		"ALTER TABLE a ADD b int CHECK (b IS NOT NULL OR c > 0);":                   false,
		"REVOKE SELECT ON a FROM b;":                                                true,
		"REVOKE EXECUTE ON FUNCTION a(int) FROM PUBLIC;":                            false,
	} {
		if got := contracts(migration) != ""; got != found {
			t.Errorf("%q: found %t", migration, got)
		}
	}
}

// lastVersion returns the last tag; without one, the first version
// of make test-upgrade.
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
