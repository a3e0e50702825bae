package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/httpapi"
)

func userOf(address httpapi.Secret) string {
	parsed, err := url.Parse(address.Reveal())
	if err != nil {
		return ""
	}
	return parsed.User.Username()
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// rights are a role's rights.
type rights struct {
	Role                string
	Superuser, Bypasses bool
	Uses, Creates, Owns bool     // the schema
	Closed              []string // its tables and sequences that the role can't use as serving needs
	Beyond              []string // its tables and sequences with which the role may do more
	Open                []string // its tables that show every tenant's rows
	Foreign             []string // schemas of other modules that the role may use
}

// rightsQuery takes a schema, all modules' schemas, and tables and
// sequences with the rights that serving needs.
const rightsQuery = `WITH relations AS (
		SELECT c.oid, relname::text AS name, relkind = 'S' AS sequence, string_to_array(coalesce(s.rights, ''), ', ') AS needed
		FROM pg_class c LEFT JOIN unnest($3::text[], $4::text[]) AS s (name, rights) ON s.name = relname
		WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relkind IN ('r', 'p', 'S') AND NOT relispartition),
	held AS (
		SELECT oid, name, needed, one FROM relations, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS one
			WHERE NOT sequence AND has_table_privilege(oid, one)
		UNION ALL SELECT oid, name, needed, one FROM relations, unnest('{USAGE,SELECT,UPDATE}'::text[]) AS one
			WHERE CASE WHEN sequence THEN has_sequence_privilege(oid, one) END
		UNION ALL SELECT r.oid, name, needed, one || ' (' || attname || ')'
			FROM relations r JOIN pg_attribute ON attrelid = r.oid AND attnum > 0 AND NOT attisdropped, unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) AS one
			WHERE NOT sequence AND has_column_privilege(r.oid, attnum, one) AND NOT has_table_privilege(r.oid, one))
	SELECT r.rolname, r.rolsuper, r.rolbypassrls,
	coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
	coalesce(has_schema_privilege(n.oid, 'CREATE'), false) OR has_database_privilege(current_database(), 'CREATE'),
	coalesce(pg_has_role(n.nspowner, 'USAGE'), false),
	ARRAY(SELECT name FROM relations WHERE EXISTS (SELECT FROM unnest(needed) AS wanted WHERE NOT EXISTS
		(SELECT FROM held WHERE held.oid = relations.oid AND held.one IN (wanted, split_part(wanted, ' ', 1)))) ORDER BY 1),
	ARRAY(SELECT DISTINCT name FROM held WHERE one <> ALL (needed) ORDER BY 1),
	ARRAY(SELECT relname::text FROM pg_class c WHERE relnamespace = n.oid AND relkind IN ('r', 'p') AND NOT relispartition
		AND NOT (relrowsecurity AND relforcerowsecurity)
		AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'organization' AND NOT attisdropped) ORDER BY 1),
	ARRAY(SELECT nspname::text FROM pg_namespace WHERE nspname = ANY($2) AND nspname <> $1 AND has_schema_privilege(oid, 'USAGE') ORDER BY 1)
	FROM pg_roles r LEFT JOIN pg_namespace n ON n.nspname = $1 WHERE r.rolname = current_user`

// role checks the rights of the module's role: with its own tables what serving
// needs, nothing with those of others, and never past row level security.
func (e *examination) role(ctx context.Context, o opened, users map[string]string) {
	var schemas []string
	for _, m := range modules {
		schemas = append(schemas, m.schema.Name)
	}
	needed := o.schema.Rights()
	var serving []string
	for _, relation := range sorted(needed) {
		serving = append(serving, needed[relation])
	}
	found, ok := readRow[rights](ctx, e, o, "role", rightsQuery, o.schema.Name, schemas, sorted(needed), serving)
	if !ok {
		return
	}
	before := len(e.report.Findings)
	e.bypasses(o.name, found)
	e.ownTables(o, found)
	e.beyondServing(o, found)
	e.foreignTables(o.name, found, users)
	if len(e.report.Findings) == before {
		e.report.add(OK, "role", o.name, fmt.Sprintf("%s %s its schema and is bound by row level security", found.Role, found.relation()), "")
	}
}

func (e *examination) bypasses(module string, found rights) {
	if !found.Superuser && !found.Bypasses {
		return
	}
	what := "BYPASSRLS"
	if found.Superuser {
		what = "SUPERUSER"
	}
	e.report.add(Fail, "role", module, fmt.Sprintf("%s has %s: it bypasses row level security, which keeps tenants apart", found.Role, what),
		fmt.Sprintf(`ALTER ROLE %q NO%s; the service refuses to start with it.`, found.Role, what))
}

func (e *examination) ownTables(o opened, found rights) {
	if !found.Uses && !found.Creates {
		e.report.add(Fail, "role", o.name, fmt.Sprintf("%s has neither the schema %s nor the right to make it", found.Role, o.schema.Name),
			fmt.Sprintf("weir migrate makes it, as the role of %s; or ALTER DATABASE … OWNER TO %q.", endpoint.MigratingDatabaseOf(o.name), found.Role))
	}
	if len(found.Closed) > 0 {
		e.report.add(Fail, "role", o.name, fmt.Sprintf("%s can't use as serving needs %s", found.Role, strings.Join(found.Closed, ", ")),
			"weir migrate gives the role what serving needs.")
	}
	if len(found.Open) > 0 {
		e.report.add(Fail, "role", o.name, "row level security is not forced on "+strings.Join(found.Open, ", "),
			fmt.Sprintf("ALTER TABLE %s.… ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY.", o.schema.Name))
	}
}

// relation returns the role's relation to its schema.
func (r rights) relation() string {
	if r.Owns {
		return "owns and serves"
	}
	return "serves, and doesn't own,"
}

// beyondServing checks for rights beyond serving, if another role
// migrates: with one role for both nothing can be revoked.
func (e *examination) beyondServing(o opened, found rights) {
	if found.Owns && !endpoint.MigratesApart(o.name) {
		return
	}
	what := "owns its schema, though another role migrates it: it can drop tables and turn row level security off"
	switch {
	case found.Owns:
	case found.Uses && found.Creates:
		what = "may make things in its schema or database, though it need not"
	case len(found.Beyond) > 0:
		what = "may do more than serving needs with " + firstFew(found.Beyond)
	default:
		return
	}
	e.report.add(Fail, "role", o.name, found.Role+" "+what, fmt.Sprintf(`Take it away (REASSIGN OWNED BY %q TO the role of %s, REVOKE), then weir migrate.`,
		found.Role, endpoint.MigratingDatabaseOf(o.name)))
}

// foreignTables checks whether modules with separate roles are closed
// to each other.
func (e *examination) foreignTables(module string, found rights, users map[string]string) {
	for _, other := range found.Foreign {
		if user := cmp.Or(users[other], found.Role); user != found.Role {
			e.report.add(Fail, "role", module, fmt.Sprintf("%s may look into the schema of %s", found.Role, other),
				fmt.Sprintf("REVOKE ALL ON SCHEMA %s FROM %q.", other, found.Role))
		}
	}
}
