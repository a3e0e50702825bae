package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
			if err != nil {
				t.Fatal(err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
