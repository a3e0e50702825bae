package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/prune"
)

// ErrNoRules means that there is no such version of a project's rules.
var ErrNoRules = errors.New("there is no such version of rules")

// RuleBounds are those of the table of rules.
func RuleBounds() []prune.Bound {
	return []prune.Bound{{Table: "ingest_rules", Keeps: "the newest 100 versions of each project", By: "who writes the next one"}}
}

const ruleColumns = `organization, project, version, text, note, set_by, set_by_name, set_at, restored`

func scanRules(row pgx.CollectableRow) (v ingest.RuleVersion, err error) {
	err = row.Scan(&v.Organization, &v.Project, &v.Version, &v.Text, &v.Note, &v.By, &v.ByName, &v.At, &v.Restored)
	v.At = v.At.UTC()
	return v, err
}

// RuleVersions lists versions of a project's rules before a number, the newest first.
func RuleVersions(ctx context.Context, tx pgx.Tx, organization, project string, before int64, limit int) ([]ingest.RuleVersion, error) {
	rows, err := tx.Query(ctx, `SELECT `+ruleColumns+` FROM ingest_rules WHERE organization = $1 AND project = $2 AND version < $3
		ORDER BY version DESC LIMIT $4`, organization, project, before, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read versions of rules: %w", err)
	}
	return pgx.CollectRows(rows, scanRules)
}

// FindRules finds a version of a project's rules, or ErrNoRules.
func FindRules(ctx context.Context, tx pgx.Tx, organization, project string, version int64) (ingest.RuleVersion, error) {
	found, err := RuleVersions(ctx, tx, organization, project, version+1, 1)
	if err == nil && (len(found) == 0 || found[0].Version != version) {
		err = ErrNoRules
	}
	if err != nil {
		return ingest.RuleVersion{}, err
	}
	return found[0], nil
}

// LockRules has writers of a project's rules take turns until they commit.
func LockRules(ctx context.Context, tx pgx.Tx, organization, project string) error {
	return lock(ctx, tx, "rules of "+project, organization)
}

// InsertRules keeps a new version, and no more than the newest ones before it.
// The caller has the lock.
func InsertRules(ctx context.Context, tx pgx.Tx, v *ingest.RuleVersion) error {
	_, err := tx.Exec(ctx, `INSERT INTO ingest_rules (`+ruleColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		v.Organization, v.Project, v.Version, v.Text, v.Note, v.By, v.ByName, v.At, v.Restored)
	if err != nil {
		return fmt.Errorf("cannot keep version %d of rules: %w", v.Version, err)
	}
	_, err = tx.Exec(ctx, `DELETE FROM ingest_rules WHERE organization = $1 AND project = $2 AND version <= $3`,
		v.Organization, v.Project, v.Version-ingest.MaxRuleVersions)
	return err
}

// NewestRules returns the rules of all projects, as the system sees them.
func NewestRules(ctx context.Context, tx pgx.Tx) ([]ingest.RuleVersion, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT ON (organization, project) `+ruleColumns+` FROM ingest_rules ORDER BY organization, project, version DESC`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRules)
}
