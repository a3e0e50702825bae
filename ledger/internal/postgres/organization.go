package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

// planRow is a plan as organizations.plans stores it.
type planRow struct {
	From              time.Time   `json:"from"`
	Tier              ledger.Tier `json:"tier"`
	Quota             int64       `json:"quota,omitempty"`
	RequestsPerMinute int         `json:"requests_per_minute,omitempty"`
	Overage           bool        `json:"overage,omitempty"`
	OverageCap        int64       `json:"overage_cap,omitempty"`
	Terms             termsRow    `json:"terms"`
}

// termsRow is terms of a tier as plans and decisions store them.
type termsRow struct {
	Version           int64 `json:"version"`
	Quota             int64 `json:"quota"`
	RequestsPerMinute int   `json:"requests_per_minute"`
	RetentionDays     int   `json:"retention_days"`
}

func newPlanRow(p ledger.Plan) planRow {
	return planRow{p.From, p.Tier, p.Quota, p.RequestsPerMinute, p.Overage, p.OverageCap, termsRow(p.TierTerms)}
}

func (r planRow) plan() ledger.Plan {
	return ledger.Plan{
		From: r.From, Tier: r.Tier, Quota: r.Quota, RequestsPerMinute: r.RequestsPerMinute, Overage: r.Overage, OverageCap: r.OverageCap,
		TierTerms: ledger.Terms(r.Terms),
	}
}

// anchorRow is an anchor as organizations.anchors stores it.
type anchorRow struct {
	From time.Time `json:"from"`
	Day  int       `json:"day"`
}

const organizationColumns = `o.organization, o.anchor_day, o.anchors, o.plans, o.suspended, o.opened_at, o.pool, o.closed_through, o.decisions, o.decided_at,
	o.budgets, o.thresholds, o.usual_thresholds, o.clock, o.head, o.statements, o.stated`

// organizationRow scans organizationColumns.
type organizationRow struct {
	o               ledger.Organization
	plans           []planRow
	anchors         []anchorRow
	closed, decided *time.Time
	clock           *time.Time
	head, stated    []byte
}

func (r *organizationRow) fields() []any {
	return []any{
		&r.o.ID, &r.o.AnchorDay, &r.anchors, &r.plans, &r.o.Suspended, &r.o.Opened, &r.o.Pool, &r.closed, &r.o.Decisions, &r.decided,
		&r.o.Budgets, &r.o.Thresholds, &r.o.Usual, &r.clock, &r.head, &r.o.Statements, &r.stated,
	}
}

// organization returns the scanned organization.
func (r *organizationRow) organization() ledger.Organization {
	o := r.o
	o.ClosedThrough, o.DecidedAt, o.Clock, o.Opened = timeOf(r.closed), timeOf(r.decided), timeOf(r.clock), o.Opened.UTC()
	o.Head, o.Stated = hashOf(r.head), hashOf(r.stated)
	o.Anchors = convertAll(r.anchors, func(a anchorRow) ledger.Anchor { return ledger.Anchor(a) })
	o.Plans = convertAll(r.plans, planRow.plan)
	return o
}

// timeOf returns a time in UTC; zero for NULL.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// orNull returns a time; NULL for zero.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// LockOrganizations locks and returns organizations, by sorted ids. It
// adds missing ones as provisional.
func LockOrganizations(ctx context.Context, tx pgx.Tx, booked time.Time, ids []string) (map[string]ledger.Organization, error) {
	if err := AddMissing(ctx, tx, booked, ids); err != nil {
		return nil, err
	}
	return LockKnown(ctx, tx, ids)
}

// AddMissing adds missing organizations, by sorted ids, as provisional.
// It precedes any lock, as it waits for others that add the same.
func AddMissing(ctx context.Context, tx pgx.Tx, booked time.Time, ids []string) error {
	_, err := tx.Exec(ctx, `INSERT INTO organizations (organization, anchor_day, opened_at)
		SELECT id, $2, $3 FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT FROM organizations o WHERE o.organization = id) ORDER BY id
		ON CONFLICT DO NOTHING`, ids, ledger.DefaultAnchorDay, booked)
	return err
}

// LockKnown locks and returns those organizations that exist.
func LockKnown(ctx context.Context, tx pgx.Tx, ids []string) (map[string]ledger.Organization, error) {
	return organizations(ctx, tx, `WHERE o.organization = ANY($1) ORDER BY o.organization FOR NO KEY UPDATE`, ids)
}

const selectOrganizations = `SELECT ` + organizationColumns + ` FROM organizations o `

const isNotDeleted = `NOT EXISTS (SELECT FROM erasures e WHERE e.organization = o.organization AND e.project = '')`

const isDue = `o.due_at <= $1 AND ` + isNotDeleted

// IsDue reports whether any organization was due by an instant.
func IsDue(ctx context.Context, tx pgx.Tx, by time.Time) (due bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM organizations o WHERE `+isDue+`)`, by).Scan(&due)
	return due, err
}

// LockDue locks at most limit organizations that were due by an
// instant. It skips those that others have locked.
func LockDue(ctx context.Context, tx pgx.Tx, by time.Time, except []string, limit int) ([]string, error) {
	return due(ctx, tx, by, except, limit, `FOR NO KEY UPDATE SKIP LOCKED`)
}

// Due lists at most limit organizations that were due by an instant,
// locked or not.
func Due(ctx context.Context, tx pgx.Tx, by time.Time, except []string, limit int) ([]string, error) {
	return due(ctx, tx, by, except, limit, ``)
}

func due(ctx context.Context, tx pgx.Tx, by time.Time, except []string, limit int, lock string) ([]string, error) {
	rows, _ := tx.Query(ctx, `SELECT o.organization FROM organizations o WHERE `+isDue+` AND o.organization <> ALL (coalesce($2::text[], '{}'))
		ORDER BY o.due_at LIMIT $3 `+lock, by, except, limit)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// LockIfDue locks an organization if it was due by an instant.
func LockIfDue(ctx context.Context, tx pgx.Tx, by time.Time, id string) (due bool, err error) {
	tag, err := tx.Exec(ctx, `SELECT FROM organizations o WHERE `+isDue+` AND o.organization = $2 FOR NO KEY UPDATE`, by, id)
	return tag.RowsAffected() > 0, err
}

func organizations(ctx context.Context, tx pgx.Tx, which string, args ...any) (map[string]ledger.Organization, error) {
	rows, _ := tx.Query(ctx, selectOrganizations+which, args...)
	return collectOrganizations(rows)
}

func collectOrganizations(rows pgx.Rows) (map[string]ledger.Organization, error) {
	known := map[string]ledger.Organization{}
	var row organizationRow
	_, err := pgx.ForEachRow(rows, row.fields(), func() error {
		o := row.organization()
		known[o.ID] = o
		return nil
	})
	return known, err
}

// LockOrganization locks one organization; found is false where there is none.
func LockOrganization(ctx context.Context, tx pgx.Tx, id string) (o ledger.Organization, found bool, err error) {
	known, err := LockKnown(ctx, tx, []string{id})
	o, found = known[id]
	return o, found, err
}

// LoadOrganization reads one organization without a lock; found is
// false where there is none.
func LoadOrganization(ctx context.Context, tx pgx.Tx, id string) (o ledger.Organization, found bool, err error) {
	known, err := organizations(ctx, tx, `WHERE o.organization = $1`, id)
	o, found = known[id]
	return o, found, err
}

// SaveOrganizations stores organizations and when each is due. Their
// books are locked and opened.
func SaveOrganizations(ctx context.Context, tx pgx.Tx, opened map[string]*ledger.Books) error {
	var batch pgx.Batch
	for _, id := range sortedKeys(opened) {
		o := opened[id].Organization
		plans := append([]planRow{}, convertAll(o.Plans, newPlanRow)...)
		anchors := append([]anchorRow{}, convertAll(o.Anchors, func(a ledger.Anchor) anchorRow { return anchorRow(a) })...)
		batch.Queue(`UPDATE organizations SET plans = $2, suspended = $3, pool = $4, closed_through = $5, decisions = $6, due_at = $7, decided_at = $8,
				budgets = $9, thresholds = $10, clock = $11, anchors = $12, anchor_day = $13, head = $14, statements = $15, stated = $16,
				usual_thresholds = $17, opened_at = $18
			WHERE organization = $1`, id, plans, o.Suspended, o.Pool, orNull(o.ClosedThrough), o.Decisions, orNull(opened[id].Due()), orNull(o.DecidedAt),
			o.Budgets, o.Thresholds, orNull(o.Clock), anchors, o.AnchorDay, o.Head[:], o.Statements, o.Stated[:], o.Usual, o.Opened)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("cannot save %d organizations: %w", batch.Len(), err)
	}
	return nil
}

// queuePools stores what is left of organizations' grants.
func queuePools(batch *pgx.Batch, organizations []ledger.Organization) {
	if len(organizations) == 0 {
		return
	}
	ids, pools := make([]string, len(organizations)), make([]int64, len(organizations))
	for i, o := range organizations {
		ids[i], pools[i] = o.ID, o.Pool
	}
	batch.Queue(`UPDATE organizations AS o SET pool = n.pool FROM unnest($1::text[], $2::bigint[]) AS n (organization, pool)
		WHERE o.organization = n.organization`, ids, pools)
}

// IsDeleted reports whether an organization is deleted.
func IsDeleted(ctx context.Context, tx pgx.Tx, organization string) (deleted bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM erasures WHERE organization = $1 AND project = '')`, organization).Scan(&deleted)
	return deleted, err
}

// AwaitBooks waits until an organization's books are unlocked: no later
// booking has a time before the call.
func AwaitBooks(ctx context.Context, pool *pgxpool.Pool, organization string) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT FROM organizations WHERE organization = $1 FOR SHARE`, organization)
		return err
	})
}

// OrganizationIDs lists at most limit organizations with a plan whose
// ids contain a text, sorted, from after on. tx must see all organizations.
func OrganizationIDs(ctx context.Context, tx pgx.Tx, containing, after string, limit int) ([]string, error) {
	rows, _ := tx.Query(ctx, `SELECT organization FROM organizations
		WHERE organization > $1 AND plans <> '[]' AND strpos(organization, $2) > 0 ORDER BY organization LIMIT $3`, after, containing, limit)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// LastActivity returns the last hour with usage of each organization,
// or the last day where hours are gone.
func LastActivity(ctx context.Context, tx pgx.Tx, organizations []string) (map[string]time.Time, error) {
	rows, _ := tx.Query(ctx, `SELECT id, coalesce(h.hour, d.day::timestamp AT TIME ZONE 'UTC') FROM unnest($1::text[]) AS id
		LEFT JOIN LATERAL (SELECT hour FROM usage_hours WHERE organization = id ORDER BY hour DESC LIMIT 1) h ON true
		LEFT JOIN LATERAL (SELECT day FROM usage_days WHERE organization = id ORDER BY day DESC LIMIT 1) d ON true
		WHERE h.hour IS NOT NULL OR d.day IS NOT NULL`, organizations)
	last := map[string]time.Time{}
	var id string
	var at time.Time
	_, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		last[id] = at.UTC()
		return nil
	})
	return last, err
}
