package doctor

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An object is a part of a schema whose loss stays unnoticed: without
// it reads are slow, or forbidden rows are accepted.
type object struct {
	Kind       string `json:"kind"` // index, constraint, trigger or policy
	Table      string `json:"table"`
	Name       string `json:"name"`
	Definition string `json:"definition"` // its CREATE statement
}

func (o object) is(other object) bool {
	return o.Kind == other.Kind && o.Table == other.Table && o.Name == other.Name
}

// level returns the level of its absence.
func (o object) level() Level {
	if strings.HasPrefix(o.Definition, "CREATE INDEX") {
		return Warn
	}
	return Fail
}

//go:embed objects/*.jsonl
var objectFiles embed.FS

// objectsOf returns the objects after all migrations of a module.
func objectsOf(module string) (objects []object, err error) {
	text, err := objectFiles.ReadFile("objects/" + module + ".jsonl")
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var o object
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, fmt.Errorf("cannot read an object of %s: %w", module, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// objectsQuery is for a schema. It omits invalid indexes, unvalidated
// constraints and disabled triggers, and all objects of partitions:
// theirs can't be lost without their table's.
const objectsQuery = `WITH tables AS (SELECT oid, relname::text AS name, oid::regclass::text AS path FROM pg_class
		WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relkind IN ('r', 'p') AND NOT relispartition),
	constraints AS (SELECT c.*, t.name, t.path FROM pg_constraint c JOIN tables t ON conrelid = t.oid
		WHERE contype IN ('c', 'f', 'p', 'u', 'x') AND conparentid = 0 AND convalidated)
	SELECT 'index', t.name, c.relname::text, replace(pg_get_indexdef(c.oid), ' ON ONLY ', ' ON ')
		FROM pg_index JOIN tables t ON indrelid = t.oid JOIN pg_class c ON indexrelid = c.oid
		WHERE indisvalid AND c.oid NOT IN (SELECT conindid FROM constraints)
	UNION ALL SELECT 'constraint', name, conname::text, format('ALTER TABLE %s ADD CONSTRAINT %I %s', path, conname, pg_get_constraintdef(oid)) FROM constraints
	UNION ALL SELECT 'trigger', t.name, tgname::text, pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN tables t ON tgrelid = t.oid
		WHERE NOT tgisinternal AND tgenabled <> 'D'
	UNION ALL SELECT 'policy', t.name, polname::text, format('CREATE POLICY %I ON %s AS %s FOR %s USING (%s)', polname, path,
			CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
			CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
			pg_get_expr(polqual, polrelid)) || coalesce(' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')', '')
		FROM pg_policy JOIN tables t ON polrelid = t.oid`

// objects checks whether the schema still has all objects of its migrations.
func (e *examination) objects(ctx context.Context, o opened) {
	found, ok := readRows[object](ctx, e, o, "schema", objectsQuery, o.schema.Name)
	wanted, err := objectsOf(o.name)
	if !ok || err != nil {
		return
	}
	whole := true
	for _, want := range wanted {
		if slices.ContainsFunc(found, want.is) {
			continue
		}
		whole = false
		e.report.add(want.level(), "schema", o.name, fmt.Sprintf("the %s %s of %s is missing, or not in force", want.Kind, want.Name, want.Table),
			"As the role that owns the schema, within it: "+want.Definition+". What is there in its place, drop first.")
	}
	if whole {
		e.report.add(OK, "schema", o.name, fmt.Sprintf("all %d indexes, constraints, triggers and policies are in force", len(wanted)), "")
	}
}
