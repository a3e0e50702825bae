package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
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
			testenv.Must(t, err)
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
	testenv.Must(t, err)
	return strings.TrimSpace(string(commit))
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

// tableOwners are the tables of tenants' schema with the only room that
// changes them, by migrations and statements.
var tableOwners = map[string]string{
	"organizations": "registry", "projects": "registry", "service_tokens": "registry", "security_policies": "registry", "deletions": "registry",
	"api_keys": "keys", "api_key_usage": "keys", "api_key_users": "keys",
	"members": "people", "invitations": "people",
	"sessions": "signin", "passkeys": "signin", "devices": "signin", "sign_in_failures": "signin",
	"challenges":   "challenge",
	"audit_events": "audit", "audit_anchors": "audit",
	"webhooks": "notifications", "deliveries": "notifications", "webhook_answers": "notifications",
	"withdrawals": "bus",
}

// foreignReads are other rooms' tables that a room reads in one query
// with its own, with the reason.
var foreignReads = map[string][]string{
	"keys": {"members", "projects"}, // the names of who requested a key, and of its project
	// how many owners can sign in without a password; whether the
	// organization is to be deleted; what is removed before a member
	"people": {"passkeys", "organizations", "sessions", "devices", "sign_in_failures"},
	"signin": {"members", "organizations"}, // whether a device is the member's; whether the organization is to be deleted
	// what is gone, so that its audit and events can be erased
	"audit":         {"organizations", "deletions", "projects", "api_keys", "service_tokens", "members", "passkeys", "webhooks"},
	"bus":           {"api_keys", "service_tokens", "sessions", "deletions"}, // whether a credential was forgotten, or its holder is deleted
	"notifications": {"organizations", "projects", "members"},                // whether they are to be deleted; who gets mail
	"readopting":    {"organizations", "projects", "api_keys", "deletions"},  // what an earlier run has done
}

var (
	changes = regexp.MustCompile(`(?:INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|ALTER TABLE|INDEX (?:CONCURRENTLY )?\w+ ON|POLICY \w+ ON) (\w+)|(?m:^(\w+_answers)$)`) // the latter is handed to shared/idempotency
	reads   = regexp.MustCompile(`(?:FROM|JOIN) (\w+)`)
)

// tablesIn returns the known tables that some SQL names where
// an expression matches.
func tablesIn(sql string, naming *regexp.Regexp) (tables []string) {
	for _, match := range naming.FindAllStringSubmatch(sql, -1) {
		if table := strings.Join(match[1:], ""); tableOwners[table] != "" && !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	return tables
}

// foreignTables finds tables of others that a room's SQL changes or,
// without permission, reads.
func foreignTables(room, sql string) (found []string) {
	changed := tablesIn(sql, changes)
	for _, table := range changed {
		if owner := tableOwners[table]; owner != room {
			found = append(found, fmt.Sprintf("%s changes %s, which is of %s", room, table, owner))
		}
	}
	for _, table := range tablesIn(sql, reads) {
		if tableOwners[table] != room && !slices.Contains(slices.Concat(changed, foreignReads[room]), table) {
			found = append(found, fmt.Sprintf("%s reads %s, which is of %s: say why in foreignReads", room, table, tableOwners[table]))
		}
	}
	return found
}

// literals returns the text of a file's string literals.
func literals(file *ast.File) string {
	var text strings.Builder
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if value, err := strconv.Unquote(literal.Value); err == nil {
				text.WriteString(value + "\n")
			}
		}
		return true
	})
	return text.String()
}

// Each table of tenants is changed by one room: a column is handled in
// the domain's file and that room's folder.
func TestTablesHaveOneRoom(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t, "tenants") {
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			testenv.Must(t, err)
			sql := literals(file)
			for _, table := range tablesIn(sql, changes) {
				seen[table] = true
			}
			for _, violation := range foreignTables(filepath.Base(p.Dir), sql) {
				t.Errorf("%s/%s: %s", p.ImportPath, name, violation)
			}
		}
	}
	for table := range tableOwners {
		if !seen[table] {
			t.Errorf("no statement changes %s", table)
		}
	}
}

// A migration lies with the tables that it changes, and tableOwners
// names every created table.
func TestMigrationsLieInTheirRooms(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "tenants", "internal", "*", "migrations", "*.sql"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d migrations of tenants found, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		sql, room := withoutComments(string(text)), filepath.Base(filepath.Dir(filepath.Dir(file)))
		for _, made := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(sql, -1) {
			if tableOwners[made[1]] == "" {
				t.Errorf("%s makes %s: name its room in tableOwners", file, made[1])
			}
		}
		for _, violation := range foreignTables(room, sql) {
			t.Errorf("%s: %s", file, violation)
		}
	}
}

// withoutComments drops the comments of some SQL, which may name any table.
func withoutComments(sql string) string {
	return regexp.MustCompile(`--[^\n]*`).ReplaceAllString(sql, "")
}

// A table that is changed or read elsewhere is found, and allowed ones are not.
func TestForeignTablesAreFound(t *testing.T) {
	for _, c := range []struct {
		room, sql string
		faults    int
	}{
		{"keys", "UPDATE api_keys SET name = $1", 0},
		{"people", "UPDATE api_keys SET name = $1", 1},
		{"people", "DELETE FROM api_keys", 1},
		{"people", "ALTER TABLE api_keys ADD COLUMN a text", 1},
		{"people", "CREATE UNIQUE INDEX CONCURRENTLY a ON api_keys (a)", 1},
		{"keys", "SELECT FROM api_keys k JOIN projects p ON true", 0},
		{"keys", "SELECT FROM sessions", 1},
		{"keys", "the name FROM elsewhere", 0},
	} {
		if found := foreignTables(c.room, c.sql); len(found) != c.faults {
			t.Errorf("%s: %s: found %q", c.room, c.sql, found)
		}
	}
}
