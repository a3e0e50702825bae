package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rights are what serving needs, by table or sequence: "SELECT, UPDATE (state)".
// A partition has those of its table. What is not named serving can't use.
type Rights map[string]string

// On are the rights on a relation, sorted.
func (r Rights) On(relation string) (rights []string) {
	if r[relation] != "" {
		rights = strings.Split(r[relation], ", ")
	}
	slices.Sort(rights)
	return rights
}

// Rights are those on all relations of the schema.
func (s Schema) Rights() Rights {
	all := Rights{"migrations": "SELECT"}
	for _, set := range s.Migrations {
		for relation, rights := range set.Rights {
			all[relation] = rights
		}
	}
	return all
}

// Grant gives a role exactly what serving needs of the schema, which the pool's
// role owns. It may run beside services, and again: what is as it should be is
// not touched.
func Grant(ctx context.Context, pool *pgxpool.Pool, schema Schema, role string) error {
	err := InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, schema.Name); err != nil {
			return err
		}
		if err := grantSchema(ctx, tx, schema.Name, role); err != nil {
			return err
		}
		return grantRelations(ctx, tx, schema, role)
	})
	if err != nil {
		return fmt.Errorf("cannot give %q its rights on schema %q: %w", role, schema.Name, err)
	}
	return nil
}

// grantSchema lets the role look into the schema, and call those of its
// functions that work as their owner. Triggers need no right.
func grantSchema(ctx context.Context, tx pgx.Tx, schema, role string) error {
	name, grantee := pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize()
	statements := []string{
		fmt.Sprintf(`REVOKE ALL ON SCHEMA %s FROM %s, PUBLIC`, name, grantee),
		fmt.Sprintf(`GRANT USAGE ON SCHEMA %s TO %s`, name, grantee),
		fmt.Sprintf(`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %s FROM %s, PUBLIC`, name, grantee),
	}
	functions, err := texts(ctx, tx, `SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = $1::text::regnamespace AND prosecdef`, name)
	if err != nil {
		return err
	}
	for _, function := range functions {
		statements = append(statements, fmt.Sprintf(`GRANT EXECUTE ON FUNCTION %s TO %s`, function, grantee))
	}
	return execAll(ctx, tx, statements)
}

// A relation is a table, partition or sequence, and what a role may do with it.
type relation struct {
	Name, Kind, Root string
	Held             []string
}

const relationsQuery = `SELECT c.oid::regclass::text, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, r.relname::text,
	ARRAY(SELECT privilege_type COLLATE "C" FROM aclexplode(c.relacl) WHERE grantee = $2::text::regrole
		UNION SELECT privilege_type || ' (' || attname || ')' FROM pg_attribute, aclexplode(attacl)
			WHERE attrelid = c.oid AND NOT attisdropped AND grantee = $2::text::regrole ORDER BY 1)
	FROM pg_class c JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
	WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'S') ORDER BY 1`

func grantRelations(ctx context.Context, tx pgx.Tx, schema Schema, role string) error {
	grantee := pgx.Identifier{role}.Sanitize()
	rows, err := tx.Query(ctx, relationsQuery, pgx.Identifier{schema.Name}.Sanitize(), grantee)
	if err != nil {
		return err
	}
	relations, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
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

// statements replace what the grantee may do, where it is not as wanted.
func (r relation) statements(wanted []string, grantee string) (all []string) {
	if slices.Equal(r.Held, wanted) {
		return nil
	}
	all = []string{fmt.Sprintf(`REVOKE ALL ON %s %s FROM %s`, r.Kind, r.Name, grantee)}
	if len(wanted) > 0 {
		all = append(all, fmt.Sprintf(`GRANT %s ON %s %s TO %s`, strings.Join(wanted, ", "), r.Kind, r.Name, grantee))
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
