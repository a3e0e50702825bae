package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// RecordRules stores the rules of a starting process, with the next
// version where they differ from those of the last. Decisions are made
// with what is recorded.
func RecordRules(ctx context.Context, tx pgx.Tx, rules ledger.Rules) error {
	text, err := json.Marshal(newTermsChangedRow(ledger.TermsChanged{Tiers: rules.Tiers, Thresholds: rules.Thresholds}))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO terms AS t (version, rules) VALUES (1, $1)
		ON CONFLICT (one_row) DO UPDATE SET version = t.version + 1, rules = excluded.rules WHERE t.rules <> excluded.rules`, text)
	return err
}

// LoadRules returns the rules that were recorded last; the zero Rules
// where none were.
func LoadRules(ctx context.Context, tx pgx.Tx) (rules ledger.Rules, err error) {
	var text []byte
	err = tx.QueryRow(ctx, `SELECT version, rules FROM terms`).Scan(&rules.Version, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return rules, nil
	}
	var row termsChangedRow
	if err == nil {
		err = json.Unmarshal(text, &row)
	}
	recorded := row.decision()
	rules.Tiers, rules.Thresholds = recorded.Tiers, recorded.Thresholds
	return rules, err
}

// retentionRow is a retention as terms stores it, in months.
type retentionRow struct {
	Hours     int `json:"hours"`
	Transfers int `json:"transfers"`
	Books     int `json:"books"`
}

// RecordRetention stores how long a starting process keeps what, behind
// RecordRules.
func RecordRetention(ctx context.Context, tx pgx.Tx, kept ledger.Retention) error {
	_, err := tx.Exec(ctx, `UPDATE terms SET kept = $1 WHERE kept IS DISTINCT FROM $1`, retentionRow(kept))
	return err
}

// LoadRetention returns the retention that was recorded last, or the
// default.
func LoadRetention(ctx context.Context, tx pgx.Tx) (ledger.Retention, error) {
	var row *retentionRow
	err := tx.QueryRow(ctx, `SELECT (SELECT kept FROM terms)`).Scan(&row)
	if err != nil || row == nil {
		return ledger.DefaultRetention(), err
	}
	return ledger.Retention(*row), nil
}

// LockOutdated locks and returns at most limit organizations that
// follow rules of an earlier version. It skips those that others have
// locked.
func LockOutdated(ctx context.Context, tx pgx.Tx, version int64, limit int) (map[string]ledger.Organization, error) {
	return organizations(ctx, tx, `WHERE o.terms < $1 AND o.plans <> '[]' AND `+isNotDeleted+` ORDER BY o.organization LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`,
		version, limit)
}

// SetFollowed notes that organizations follow the rules of a version.
func SetFollowed(ctx context.Context, tx pgx.Tx, version int64, organizations []string) error {
	slices.Sort(organizations)
	_, err := tx.Exec(ctx, `UPDATE organizations SET terms = $1 WHERE organization = ANY($2)`, version, organizations)
	return err
}
