package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// maxCharges is how many charges a statement lists.
const maxCharges = 10_000

// StatementSources reads the sources of the statement of a period that
// has just closed.
func StatementSources(ctx context.Context, tx pgx.Tx, organization string, period calendar.Period) (from ledger.Sources, err error) {
	if from.Lines, err = linesSince(ctx, tx, organization, period.Start); err != nil {
		return from, fmt.Errorf("cannot read the lines: %w", err)
	}
	if from.Grants, err = grantsSince(ctx, tx, organization, period); err != nil {
		return from, fmt.Errorf("cannot read the grants: %w", err)
	}
	from.Charges, from.ChargedBy, err = chargesOf(ctx, tx, organization, period)
	return from, err
}

// chargesOf returns the charges of a period by day, and by as many
// other dimensions as maxCharges allows.
func chargesOf(ctx context.Context, tx pgx.Tx, organization string, period calendar.Period) (uses []ledger.Use, by []string, err error) {
	for _, dimensions := range [][]Dimension{{ByProject, ByEnvironment}, {ByProject}, {}} {
		query := UsageQuery{Bucket: ByDay, By: map[Dimension]bool{}, From: period.Start, To: period.End, Limit: maxCharges + 1}
		by = []string{}
		for _, dimension := range dimensions {
			query.By[dimension], by = true, append(by, string(dimension))
		}
		if uses, err = Usages(ctx, tx, pg.Organization(organization), query); err != nil || len(uses) <= maxCharges {
			break
		}
	}
	return uses, by, err
}

// grantsSince reads the grants that may have been in force in a period.
// A grant that ended before may have lines by late charges.
func grantsSince(ctx context.Context, tx pgx.Tx, organization string, period calendar.Period) (found []ledger.Grant, err error) {
	rows, _ := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants WHERE organization = $1 AND starts_at < $3
		AND (ended_at IS NULL OR ended_at >= $2 OR id IN (SELECT subject FROM period_lines WHERE organization = $1 AND period_start >= $2))
		AND status <> $4 ORDER BY created_at, id`, organization, period.Start, period.End, ledger.GrantScheduled)
	return found, forEachGrant(rows, func(_ string, g ledger.Grant) { found = append(found, g) })
}

// LastStatement returns the number of an organization's last statement; 0
// where there is none.
func LastStatement(ctx context.Context, tx pgx.Tx, organization string) (number int64, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(max(number), 0) FROM statements WHERE organization = $1`, organization).Scan(&number)
	return number, err
}

// SaveStatement stores a statement and returns it with its hash; saved
// is false where its period has one.
func SaveStatement(ctx context.Context, tx pgx.Tx, s ledger.Statement) (sealed ledger.Statement, saved bool, err error) {
	document, err := json.Marshal(newStatementRow(s))
	if err != nil {
		return s, false, err
	}
	s = s.Sealed(document)
	tag, err := tx.Exec(ctx, `INSERT INTO statements (`+statementColumns+`, document) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (organization, period_start) DO NOTHING`,
		s.Organization, s.Number, s.Period.Start, s.Period.End, s.Made, s.Previous[:], s.Hash[:], document)
	return s, tag.RowsAffected() > 0, err
}

// sealStatement returns a statement with the hash of its content.
func sealStatement(s ledger.Statement) (ledger.Statement, error) {
	document, err := json.Marshal(newStatementRow(s))
	return s.Sealed(document), err
}

const statementColumns = `organization, number, period_start, period_end, made_at, previous, hash`

// Statements lists at most limit statements with numbers below before,
// the latest first, with totals only. 0 is the start.
func Statements(ctx context.Context, tx pgx.Tx, organization pg.Organization, before int64, limit int) ([]ledger.Statement, error) {
	rows, _ := tx.Query(ctx, `SELECT `+statementColumns+`, document - 'grants' - 'charges' - 'late' - 'adjustments' FROM statements
		WHERE organization = $1 AND ($2 = 0 OR number < $2) ORDER BY number DESC LIMIT $3`, organization, before, limit)
	return pgx.CollectRows(rows, scanStatement)
}

// LoadStatement reads one statement, or returns ledger.ErrNoStatement.
func LoadStatement(ctx context.Context, tx pgx.Tx, organization pg.Organization, number int64) (ledger.Statement, error) {
	rows, _ := tx.Query(ctx, `SELECT `+statementColumns+`, document FROM statements WHERE organization = $1 AND number = $2`, organization, number)
	s, err := pgx.CollectExactlyOneRow(rows, scanStatement)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ledger.ErrNoStatement
	}
	return s, err
}

func scanStatement(row pgx.CollectableRow) (s ledger.Statement, err error) {
	var document statementRow
	var previous, hash []byte
	if err := row.Scan(&s.Organization, &s.Number, &s.Period.Start, &s.Period.End, &s.Made, &previous, &hash, &document); err != nil {
		return s, err
	}
	s.Previous, s.Hash = hashOf(previous), hashOf(hash)
	s.Period, s.Made = calendar.Period{Start: s.Period.Start.UTC(), End: s.Period.End.UTC()}, s.Made.UTC()
	document.fill(&s)
	return s, nil
}

// statementRow is a statement as statements.document stores it.
type statementRow struct {
	Test bool `json:"test,omitempty"`
	planTermsRow
	Totals      totalsRow       `json:"totals"`
	ChargedBy   []string        `json:"charged_by"`
	Grants      []movementRow   `json:"grants,omitempty"`
	Charges     []dayChargeRow  `json:"charges,omitempty"`
	Late        []lateRow       `json:"late,omitempty"`
	Adjustments []adjustmentRow `json:"adjustments,omitempty"`
	Chain       headRow         `json:"chain"`
}

type planTermsRow struct {
	Tier              ledger.Tier `json:"tier"`
	Quota             int64       `json:"quota"`
	RequestsPerMinute int         `json:"requests_per_minute"`
	Overage           bool        `json:"overage"`
	OverageCap        int64       `json:"overage_cap"`
}

type headRow struct {
	Sequence int64  `json:"sequence"`
	Hash     []byte `json:"hash"`
}

type totalsRow struct {
	Opening   int64 `json:"opening"`
	Allowance int64 `json:"allowance"`
	Prorated  int64 `json:"prorated"`
	Granted   int64 `json:"granted"`
	Consumed  int64 `json:"consumed"`
	Overage   int64 `json:"overage"`
	Overshoot int64 `json:"overshoot"`
	Expired   int64 `json:"expired"`
	Voided    int64 `json:"voided"`
	Closing   int64 `json:"closing"`
}

type movementRow struct {
	Grant   string `json:"grant"`
	Opening int64  `json:"opening"`
	Issued  int64  `json:"issued"`
	Used    int64  `json:"used"`
	Expired int64  `json:"expired"`
	Voided  int64  `json:"voided"`
	Closing int64  `json:"closing"`
}

type dayChargeRow struct {
	Day         time.Time `json:"day"`
	Project     string    `json:"project"`
	Environment string    `json:"environment"`
	Requests    int64     `json:"requests"`
	Entries     int64     `json:"entries"`
	Bytes       int64     `json:"bytes"`
}

type lateRow struct {
	Of    time.Time `json:"of"`
	Bytes int64     `json:"bytes"`
}

type adjustmentRow struct {
	ID    string    `json:"id"`
	Of    time.Time `json:"of"`
	Bytes int64     `json:"bytes"`
}

func newStatementRow(s ledger.Statement) statementRow {
	row := statementRow{
		Test: s.Test, planTermsRow: planTermsRow(s.StatementTerms), Totals: totalsRow(s.Totals), ChargedBy: s.ChargedBy,
		Chain: headRow{s.Chain.Sequence, s.Chain.Hash[:]},
	}
	row.Grants = convertAll(s.Grants, func(m ledger.GrantMovement) movementRow { return movementRow(m) })
	row.Charges = convertAll(s.Charges, func(c ledger.DayCharge) dayChargeRow { return dayChargeRow(c) })
	row.Late = convertAll(s.Late, func(l ledger.LateCharge) lateRow { return lateRow(l) })
	row.Adjustments = convertAll(s.Adjustments, func(a ledger.AdjustmentEntry) adjustmentRow { return adjustmentRow(a) })
	return row
}

func (r statementRow) fill(s *ledger.Statement) {
	s.Test, s.StatementTerms, s.Totals, s.ChargedBy = r.Test, ledger.StatementTerms(r.planTermsRow), ledger.Totals(r.Totals), r.ChargedBy
	s.Chain = ledger.Head{Sequence: r.Chain.Sequence, Hash: hashOf(r.Chain.Hash)}
	s.Grants = convertAll(r.Grants, func(m movementRow) ledger.GrantMovement { return ledger.GrantMovement(m) })
	s.Charges = convertAll(r.Charges, func(c dayChargeRow) ledger.DayCharge { return ledger.DayCharge(c) })
	s.Late = convertAll(r.Late, func(l lateRow) ledger.LateCharge { return ledger.LateCharge(l) })
	s.Adjustments = convertAll(r.Adjustments, func(a adjustmentRow) ledger.AdjustmentEntry { return ledger.AdjustmentEntry(a) })
}

func convertAll[From, To any](from []From, convert func(From) To) (to []To) {
	for _, one := range from {
		to = append(to, convert(one))
	}
	return to
}

// queueLines adds lines to coming statements.
func queueLines(batch *pgx.Batch, opened map[string]*ledger.Books) {
	var ids, subjects []string
	var starts, of []time.Time
	var kinds []int16
	var bytes []int64
	for _, id := range sortedKeys(opened) {
		for _, l := range opened[id].Lines() {
			ids, subjects, kinds = append(ids, id), append(subjects, l.Subject), append(kinds, int16(l.Kind))
			starts, of, bytes = append(starts, l.Start), append(of, l.Of), append(bytes, l.Bytes)
		}
	}
	if len(ids) == 0 {
		return
	}
	batch.Queue(`INSERT INTO period_lines AS p (organization, period_start, kind, subject, of_period, bytes)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::smallint[], $4::text[], $5::timestamptz[], $6::bigint[])
		ON CONFLICT (organization, period_start, kind, subject, of_period) DO UPDATE SET bytes = p.bytes + excluded.bytes`,
		ids, starts, kinds, subjects, of, bytes)
}

// linesSince reads the lines of an organization's periods that began at
// an instant or later.
func linesSince(ctx context.Context, tx pgx.Tx, organization string, start time.Time) (lines []ledger.Line, err error) {
	rows, _ := tx.Query(ctx, `SELECT kind, period_start, subject, of_period, bytes FROM period_lines
		WHERE organization = $1 AND period_start >= $2 ORDER BY period_start, kind, subject, of_period`, organization, start)
	var l ledger.Line
	_, err = pgx.ForEachRow(rows, []any{&l.Kind, &l.Start, &l.Subject, &l.Of, &l.Bytes}, func() error {
		l.Start, l.Of = l.Start.UTC(), l.Of.UTC()
		lines = append(lines, l)
		return nil
	})
	return lines, err
}

// statementsAndBooks compares statements with their books, and each
// with its own sums, where a condition holds. $1 is since when books are
// kept.
func statementsAndBooks(condition string) string {
	return `WITH totals AS (SELECT s.organization, s.number, s.period_start, t.*
			FROM statements s, jsonb_to_record(s.document -> 'totals') AS t (opening bigint, allowance bigint, prorated bigint, granted bigint,
				consumed bigint, overage bigint, overshoot bigint, expired bigint, voided bigint, closing bigint) WHERE ` + condition + `)
		SELECT 'what organization ' || organization || ' had by statement ' || number, opening + allowance + prorated + granted, consumed + expired + voided + closing
			FROM totals WHERE opening + allowance + prorated + granted <> consumed + expired + voided + closing
		UNION ALL SELECT 'what organization ' || t.organization || ' used by statement ' || t.number, t.consumed + t.overage + t.overshoot,
				b.consumed + b.overage + b.overshoot
			FROM totals t JOIN books b USING (organization, period_start) WHERE (t.consumed, t.overage, t.overshoot) <> (b.consumed, b.overage, b.overshoot)
		UNION ALL SELECT 'what organization ' || t.organization || ' did not use by statement ' || t.number, t.expired + t.voided, b.expired + b.voided
			FROM totals t JOIN books b USING (organization, period_start) WHERE (t.expired, t.voided) <> (b.expired, b.voided)
		UNION ALL SELECT 'what grants of organization ' || t.organization || ' grew by in statement ' || t.number, t.closing - t.opening, b.credit
			FROM totals t JOIN books b USING (organization, period_start) WHERE t.closing - t.opening <> b.credit
		UNION ALL SELECT 'books of organization ' || s.organization || ' for statement ' || s.number, 1, 0
			FROM statements s WHERE ` + condition + ` AND s.period_end >= $1
				AND NOT EXISTS (SELECT FROM books b WHERE b.organization = s.organization AND b.period_start = s.period_start)`
}

// CheckStatements compares the statements of an organization or of Everyone.
func CheckStatements(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	condition, args := scope(organization, "s.organization", since)
	return differences(ctx, tx, ledger.StatementIsBook, statementsAndBooks(condition), args...)
}
