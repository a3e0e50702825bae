package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// hashOfTerms is the hash of a row of terms with this version, rules and
// retention.
func hashOfTerms(version, rules, kept string) string {
	return `sha256(convert_to(jsonb_build_array(` + version + `, ` + rules + `::jsonb, ` + kept + `::jsonb)::text, 'UTF8'))`
}

// RecordTerms stores the rules of a starting process, with the next
// version where they differ from those of the last, and how long it keeps
// what. Decisions are made with what is recorded.
func RecordTerms(ctx context.Context, tx pgx.Tx, rules ledger.Rules, kept ledger.Retention) error {
	text, err := json.Marshal(newTermsChangedRow(ledger.TermsChanged{Tiers: rules.Tiers, Thresholds: rules.Thresholds}))
	if err != nil {
		return err
	}
	const version = `t.version + (t.rules <> excluded.rules)::int`
	_, err = tx.Exec(ctx, `INSERT INTO terms AS t (version, rules, kept, hash) VALUES (1, $1, $2, `+hashOfTerms(`1`, `$1`, `$2`)+`)
		ON CONFLICT (one_row) DO UPDATE SET version = `+version+`, rules = excluded.rules, kept = excluded.kept,
			hash = `+hashOfTerms(version, `excluded.rules`, `excluded.kept`)+`
		WHERE (t.rules, t.kept, t.hash) IS DISTINCT FROM (excluded.rules, excluded.kept, `+hashOfTerms(`t.version`, `t.rules`, `t.kept`)+`)`,
		text, retentionRow(kept))
	return err
}

// checkTerms compares what is recorded with its hash.
func checkTerms(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.TermsAreRecorded, `SELECT 'version ' || version || ' does not have its hash', 0::bigint, 0::bigint FROM terms
		WHERE hash <> `+hashOfTerms(`version`, `rules`, `kept`))
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
