package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rights are what serving needs, by table or sequence: "SELECT,
// UPDATE (state)". A partition has those of its table. Serving can't
// use other relations.
type Rights map[string]string

// On returns the rights to a relation, sorted.
func (r Rights) On(relation string) (rights []string) {
	if r[relation] != "" {
		rights = strings.Split(r[relation], ", ")
	}
	slices.Sort(rights)
	return rights
}

// Rights returns those to all relations of the schema.
func (s Schema) Rights() Rights {
	all := Rights{"migrations": "SELECT"}
	for _, set := range s.Migrations {
		for relation, rights := range set.Rights {
			all[relation] = rights
		}
	}
	return all
}

// Grant gives a role exactly the rights that serving needs in the
// schema, which the pool's role owns, and lets it connect if that role
// owns the database. It may run beside services, and again: it does not
// touch correct rights.
func Grant(ctx context.Context, pool *pgxpool.Pool, schema Schema, role string) error {
	err := grantAll(ctx, pool, schema, role)
	for again := 0; isChanged(err) && again < 5; again++ {
		err = grantAll(ctx, pool, schema, role)
	}
	if err != nil {
		return fmt.Errorf("cannot give %q its rights on schema %q: %w", role, schema.Name, err)
	}
	return nil
}

func grantAll(ctx context.Context, pool *pgxpool.Pool, schema Schema, role string) error {
	return InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, schema.Name); err != nil {
			return err
		}
		if err := grantConnect(ctx, tx, role); err != nil {
			return err
		}
		if err := grantSchema(ctx, tx, schema.Name, role); err != nil {
			return err
		}
		return grantRelations(ctx, tx, schema, role)
	})
}

// isChanged reports whether a service has dropped a day since the
// catalogue was read: the day is not found, or another transaction
// deleted its entry.
func isChanged(err error) bool {
	return code(err) == undefinedTable || code(err) == "XX000"
}

// grantConnect replaces the right that a role loses together with the
// database: the next owner takes it over.
func grantConnect(ctx context.Context, tx pgx.Tx, role string) error {
	statements, err := texts(ctx, tx, `SELECT format('GRANT CONNECT ON DATABASE %I TO %I', datname, $1::text) FROM pg_database
		WHERE datname = current_database() AND pg_has_role(datdba, 'USAGE') AND NOT has_database_privilege($1::text::name, oid, 'CONNECT')`, role)
	if err != nil {
		return err
	}
	return execAll(ctx, tx, statements)
}

// ownedQuery lists the schema and its functions, with the rights that
// each grantee should have, and has.
const ownedQuery = `SELECT o.name, o.kind, CASE g.grantee WHEN 'PUBLIC' THEN '' ELSE o.wanted END, g.grantee,
	ARRAY(SELECT privilege_type COLLATE "C" FROM aclexplode(o.acl) AS a
		WHERE a.grantee = CASE g.grantee WHEN 'PUBLIC' THEN 0 ELSE g.grantee::regrole::oid END ORDER BY 1)
	FROM (SELECT quote_ident(nspname), 'SCHEMA', 'USAGE', coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE oid = $1::text::regnamespace
		UNION ALL SELECT oid::regprocedure::text, 'ROUTINE', CASE WHEN prosecdef THEN 'EXECUTE' ELSE '' END, coalesce(proacl, acldefault('f', proowner))
			FROM pg_proc WHERE pronamespace = $1::text::regnamespace) AS o (name, kind, wanted, acl),
	unnest(ARRAY[$2::text, 'PUBLIC']) AS g (grantee)`

// grantSchema lets the role use the schema, and call those of its
// functions that run as their owner. Triggers need no right.
func grantSchema(ctx context.Context, tx pgx.Tx, schema, role string) error {
	rows, err := tx.Query(ctx, ownedQuery, pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize())
	if err != nil {
		return err
	}
	var (
		statements      []string
		o               object
		wanted, grantee string
	)
	_, err = pgx.ForEachRow(rows, []any{&o.Name, &o.Kind, &wanted, &grantee, &o.Held}, func() error {
		statements = append(statements, o.statements(strings.Fields(wanted), grantee)...)
		return nil
	})
	if err != nil {
		return err
	}
	return execAll(ctx, tx, statements)
}

// An object can have rights: a schema, function, table, partition or sequence.
type object struct {
	Name, Kind string
	Held       []string // rights of one grantee
}

// A relation is a table, partition or sequence.
type relation struct {
	object
	Root string // a partition's table, or its own name
}

const relationsQuery = `SELECT c.oid::regclass::text AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, r.relname::text AS root,
	ARRAY(SELECT privilege_type COLLATE "C" FROM aclexplode(c.relacl) WHERE grantee = $2::text::regrole
		UNION SELECT privilege_type || ' (' || attname || ')' FROM pg_attribute, aclexplode(attacl)
			WHERE attrelid = c.oid AND NOT attisdropped AND grantee = $2::text::regrole ORDER BY 1) AS held
	FROM pg_class c JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
	WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'S') ORDER BY 1`

func grantRelations(ctx context.Context, tx pgx.Tx, schema Schema, role string) error {
	grantee := pgx.Identifier{role}.Sanitize()
	rows, err := tx.Query(ctx, relationsQuery, pgx.Identifier{schema.Name}.Sanitize(), grantee)
	if err != nil {
		return err
	}
	relations, err := pgx.CollectRows(rows, pgx.RowToStructByName[relation])
	if err != nil {
		return err
	}
	var statements []string
	all := schema.Rights()
	for _, r := range relations {
		statements = append(statements, r.statements(all.On(r.Root), grantee)...)
	}
	return execAll(ctx, tx, statements)
}

// statements replace the grantee's rights if they are not as wanted.
func (o object) statements(wanted []string, grantee string) (all []string) {
	if slices.Equal(o.Held, wanted) {
		return nil
	}
	all = []string{fmt.Sprintf(`REVOKE ALL ON %s %s FROM %s`, o.Kind, o.Name, grantee)}
	if len(wanted) > 0 {
		all = append(all, fmt.Sprintf(`GRANT %s ON %s %s TO %s`, strings.Join(wanted, ", "), o.Kind, o.Name, grantee))
	}
	return all
}

func texts(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func execAll(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
