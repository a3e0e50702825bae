package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/ruletext"
)

// RuleBounds are those of the table of rules.
func RuleBounds() []prune.Bound {
	return []prune.Bound{{Table: "ingest_rules", Keeps: "the newest 100 versions of each project", By: "who writes the next one"}}
}

// Rules are a version of the rules of a project.
type Rules struct {
	Organization, Project string
	ruletext.Version
}

const ruleColumns = `organization, project, version, text, note, set_by, set_by_name, set_at, restored`

func scanRules(row pgx.CollectableRow) (r Rules, err error) {
	err = row.Scan(&r.Organization, &r.Project, &r.Number, &r.Text, &r.Note, &r.By, &r.ByName, &r.At, &r.Restored)
	r.At = r.At.UTC()
	return r, err
}

// RuleVersions lists versions of a project's rules before a number, the newest first.
func RuleVersions(ctx context.Context, tx pgx.Tx, organization, project string, before int64, limit int) ([]ruletext.Version, error) {
	rows, err := tx.Query(ctx, `SELECT `+ruleColumns+` FROM ingest_rules WHERE organization = $1 AND project = $2 AND version < $3
		ORDER BY version DESC LIMIT $4`, organization, project, before, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read versions of rules: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ruletext.Version, error) {
		r, err := scanRules(row)
		return r.Version, err
	})
}

// LockRules has writers of a project's rules take turns until they commit.
func LockRules(ctx context.Context, tx pgx.Tx, organization, project string) error {
	return lock(ctx, tx, "rules of "+project, organization)
}

// InsertRules keeps a new version, and no more than the newest ones before it.
// The caller has the lock.
func InsertRules(ctx context.Context, tx pgx.Tx, r *Rules) error {
	_, err := tx.Exec(ctx, `INSERT INTO ingest_rules (`+ruleColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		r.Organization, r.Project, r.Number, r.Text, r.Note, r.By, r.ByName, r.At, r.Restored)
	if err != nil {
		return fmt.Errorf("cannot keep version %d of rules: %w", r.Number, err)
	}
	_, err = tx.Exec(ctx, `DELETE FROM ingest_rules WHERE organization = $1 AND project = $2 AND version <= $3`,
		r.Organization, r.Project, r.Number-ruletext.MaxVersions)
	return err
}

// NewestRules returns the rules of all projects, as the system sees them.
func NewestRules(ctx context.Context, tx pgx.Tx) ([]Rules, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT ON (organization, project) `+ruleColumns+` FROM ingest_rules ORDER BY organization, project, version DESC`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRules)
}
