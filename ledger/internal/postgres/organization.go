package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// planRow is a plan as organizations.plans holds it.
type planRow struct {
	From time.Time   `json:"from"`
	Tier ledger.Tier `json:"tier"`
}

// LockOrganizations locks the books of organizations, sorted, and returns these; new ones become
// provisional.
func LockOrganizations(ctx context.Context, tx pgx.Tx, booked time.Time, ids []string) (map[string]ledger.Organization, error) {
	known, err := LockKnown(ctx, tx, ids)
	if err != nil || len(known) == len(ids) {
		return known, err
	}
	var missing []string
	for _, id := range ids {
		if _, ok := known[id]; !ok {
			missing = append(missing, id)
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO organizations (organization, anchor_day, opened_at)
		SELECT id, $2, $3 FROM unnest($1::text[]) AS id ON CONFLICT DO NOTHING`, missing, ledger.DefaultAnchorDay, booked)
	if err != nil {
		return nil, err
	}
	return LockKnown(ctx, tx, ids)
}

// LockKnown locks the books of those organizations that are there, and returns them.
func LockKnown(ctx context.Context, tx pgx.Tx, ids []string) (map[string]ledger.Organization, error) {
	rows, err := tx.Query(ctx, `SELECT organization, anchor_day, plans, suspended FROM organizations
		WHERE organization = ANY($1) ORDER BY organization FOR NO KEY UPDATE`, ids)
	if err != nil {
		return nil, err
	}
	known := make(map[string]ledger.Organization, len(ids))
	var o ledger.Organization
	var plans []byte
	_, err = pgx.ForEachRow(rows, []any{&o.ID, &o.AnchorDay, &plans, &o.Suspended}, func() error {
		o.Plans, err = parsePlans(plans)
		known[o.ID] = o
		return err
	})
	return known, err
}

// LoadOrganization reads one organization without locking it; found is false where there is none.
func LoadOrganization(ctx context.Context, tx pgx.Tx, id string) (o ledger.Organization, found bool, err error) {
	var plans []byte
	err = tx.QueryRow(ctx, `SELECT organization, anchor_day, plans, suspended FROM organizations WHERE organization = $1`, id).
		Scan(&o.ID, &o.AnchorDay, &plans, &o.Suspended)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Organization{}, false, nil
	}
	if err == nil {
		o.Plans, err = parsePlans(plans)
	}
	return o, err == nil, err
}

func parsePlans(text []byte) (ledger.Plans, error) {
	var rows []planRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("cannot read plans %q: %w", text, err)
	}
	plans := make(ledger.Plans, len(rows))
	for i, row := range rows {
		plans[i] = ledger.Plan(row)
	}
	return plans, nil
}

// SavePlans stores the plans of an organization that is locked.
func SavePlans(ctx context.Context, tx pgx.Tx, o ledger.Organization) error {
	rows := make([]planRow, len(o.Plans))
	for i, plan := range o.Plans {
		rows[i] = planRow(plan)
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE organizations SET plans = $2 WHERE organization = $1`, o.ID, text); err != nil {
		return fmt.Errorf("cannot save the plans of organization %q: %w", o.ID, err)
	}
	return nil
}
