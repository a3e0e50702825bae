package backup

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A Privilege is what a table's owner, or everybody, may do with it if
// migrations changed the rights. Names of roles could not be restored
// on a server with other roles.
type Privilege struct {
	Table  string   `json:"table"`
	Column string   `json:"column,omitempty"` // "": the whole table
	Public bool     `json:"public,omitempty"` // everybody; else the owner
	Rights []string `json:"rights"`           // none: all were revoked
}

func privileges(ctx context.Context, tx pgx.Tx) ([]Privilege, error) {
	found, err := tx.Query(ctx, `WITH of_tables AS (
			SELECT relname, '' AS attname, relacl AS acl, relowner FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relacl IS NOT NULL
		UNION ALL
			SELECT relname, attname, attacl, relowner FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attacl IS NOT NULL AND NOT attisdropped)
		SELECT relname, attname, public, ARRAY(SELECT privilege_type FROM aclexplode(acl)
			WHERE grantee = CASE WHEN public THEN 0 ELSE relowner END ORDER BY 1)
		FROM of_tables, (VALUES (false), (true)) AS grantees (public) ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[Privilege])
}

// restorePrivileges gives a restored table, which has all rights, its former
// ones. Rights on the table come before those on columns: revoking the first revokes both.
func restorePrivileges(ctx context.Context, tx pgx.Tx, all []Privilege) error {
	for _, p := range all {
		if _, err := tx.Exec(ctx, p.statements()); err != nil {
			return fmt.Errorf("cannot set the rights on %s: %w", p.Table, err)
		}
	}
	return nil
}

func (p Privilege) statements() string {
	table, grantee, columns := pgx.Identifier{p.Table}.Sanitize(), "CURRENT_USER", ""
	if p.Public {
		grantee = "PUBLIC"
	}
	var all strings.Builder
	if p.Column == "" {
		fmt.Fprintf(&all, "REVOKE ALL ON %s FROM %s;", table, grantee)
	} else {
		columns = " (" + pgx.Identifier{p.Column}.Sanitize() + ")"
	}
	for _, right := range p.Rights {
		fmt.Fprintf(&all, "GRANT %s%s ON %s TO %s;", right, columns, table, grantee)
	}
	return all.String()
}
