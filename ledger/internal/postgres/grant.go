package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

const grantColumns = `organization, id, amount, remaining, consumed, expired, voided, priority, starts_at, expires_at, rollover_cap,
	source, reason, created_at, status, announced, ended_at, ahead, decision`

// LiveGrants reads the grants that may still change, by organization.
func LiveGrants(ctx context.Context, tx pgx.Tx, organizations []string) (map[string][]ledger.Grant, error) {
	if len(organizations) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants WHERE organization = ANY($1) AND (status = $2 OR status = $3 AND remaining > 0)
		ORDER BY organization, created_at, id`, organizations, ledger.GrantScheduled, ledger.GrantActive)
	if err != nil {
		return nil, err
	}
	live := map[string][]ledger.Grant{}
	err = forEachGrant(rows, func(organization string, g ledger.Grant) { live[organization] = append(live[organization], g) })
	return live, err
}

// A GrantCursor is a place in an organization's list of grants. The
// zero value is the start.
type GrantCursor struct {
	Created time.Time `json:"c"`
	ID      string    `json:"i"`
}

// CursorOf returns a grant's place in the list.
func CursorOf(g ledger.Grant) GrantCursor { return GrantCursor{g.Created, g.ID} }

// Grants lists at most limit grants after a place, the latest first.
func Grants(ctx context.Context, tx pgx.Tx, organization pg.Organization, after GrantCursor, limit int) (found []ledger.Grant, err error) {
	rows, err := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants
		WHERE organization = $1 AND (NOT $2::boolean OR (created_at, id) < ($3, $4)) ORDER BY created_at DESC, id DESC LIMIT $5`,
		organization, after != GrantCursor{}, after.Created, after.ID, limit)
	if err != nil {
		return nil, err
	}
	return found, forEachGrant(rows, func(_ string, g ledger.Grant) { found = append(found, g) })
}

// LoadGrant reads one grant, or returns ledger.ErrNoGrant.
func LoadGrant(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (found ledger.Grant, err error) {
	rows, err := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants WHERE organization = $1 AND id = $2`, organization, id)
	if err != nil {
		return found, err
	}
	err = forEachGrant(rows, func(_ string, g ledger.Grant) { found = g })
	if err == nil && found.ID == "" {
		err = ledger.ErrNoGrant
	}
	return found, err
}

func forEachGrant(rows pgx.Rows, each func(organization string, g ledger.Grant)) error {
	var organization string
	var g ledger.Grant
	var expires, ended *time.Time
	var ahead []aheadRow
	_, err := pgx.ForEachRow(rows, []any{
		&organization, &g.ID, &g.Amount, &g.Remaining, &g.Consumed, &g.Expired, &g.Voided, &g.Priority, &g.Starts, &expires, &g.RolloverCap,
		&g.Source, &g.Reason, &g.Created, &g.Status, &g.Announced, &ended, &ahead, &g.Decision,
	}, func() error {
		g.Ahead = convertAll(ahead, func(a aheadRow) ledger.Ahead { return ledger.Ahead(a) })
		g.Starts, g.Created, g.Expires, g.Ended = g.Starts.UTC(), g.Created.UTC(), timeOf(expires), timeOf(ended)
		each(organization, g)
		return nil
	})
	return err
}

// queueGrants writes the grants of opened books and the pools of their
// organizations.
func queueGrants(batch *pgx.Batch, opened map[string]*ledger.Books) {
	var organizations []ledger.Organization
	for _, id := range sortedKeys(opened) {
		books := opened[id]
		for _, g := range books.Grants {
			queueGrant(batch, id, g)
		}
		if len(books.Grants) > 0 {
			organizations = append(organizations, books.Organization)
		}
	}
	queuePools(batch, organizations)
}

// aheadRow is an Ahead as grants.ahead stores it.
type aheadRow struct {
	Start time.Time `json:"start"`
	Bytes int64     `json:"bytes"`
}

func aheadOf(g *ledger.Grant) []aheadRow {
	return append([]aheadRow{}, convertAll(g.Ahead, func(a ledger.Ahead) aheadRow { return aheadRow(a) })...)
}

func queueGrant(batch *pgx.Batch, organization string, g *ledger.Grant) {
	batch.Queue(`INSERT INTO grants (`+grantColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
		ON CONFLICT (organization, id) DO UPDATE SET remaining = excluded.remaining, consumed = excluded.consumed, expired = excluded.expired,
			voided = excluded.voided, status = excluded.status, announced = excluded.announced, ended_at = excluded.ended_at,
			ahead = excluded.ahead`,
		organization, g.ID, g.Amount, g.Remaining, g.Consumed, g.Expired, g.Voided, g.Priority, g.Starts, orNull(g.Expires), g.RolloverCap,
		g.Source, g.Reason, g.Created, g.Status, g.Announced, orNull(g.Ended), aheadOf(g), g.Decision)
}
