package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

// pastDecisions are the decisions older than the books. Those in force
// stay, and the last of each organization, which holds its number.
type pastDecisions struct {
	kept  ledger.Retention
	clock func() time.Time
}

func (pastDecisions) Name() string { return "events" }

func (d pastDecisions) Keeps() string {
	return fmt.Sprintf("what is in force about an organization; else %d months, of each period at most %d that people make and a few that time makes",
		d.kept.Books, ledger.MaxDecisions)
}

// organizationsPerPrune are the organizations of one transaction.
const organizationsPerPrune = 100

// pastOrganizations selects organizations with a past decision; each
// period makes at least one. Their horizon is the last number that is
// old and no longer compared with a link.
const pastOrganizations = `SELECT o.organization, horizon.version FROM organizations o
	CROSS JOIN LATERAL (SELECT version, ` + decidedAt + ` AS at FROM events e WHERE e.organization = o.organization AND stream = '` + decisionStream + `'
		AND name = ANY($2) ORDER BY version LIMIT 1) oldest
	CROSS JOIN LATERAL (SELECT coalesce((SELECT CASE WHEN sequence = 1 THEN 0 ELSE decisions END FROM links WHERE organization = o.organization
			ORDER BY sequence LIMIT 1), (SELECT decisions FROM chains WHERE organization = o.organization), 0) AS version) linked
	CROSS JOIN LATERAL (SELECT max(version) AS version FROM events e WHERE e.organization = o.organization AND stream = '` + decisionStream + `'
		AND version <= linked.version AND version < o.decisions AND ` + decidedAt + ` < $1) horizon
	WHERE oldest.at < $1 AND oldest.version <= horizon.version LIMIT $3`

// transient are the decisions without effect once the books of their
// time are gone.
var transient = []string{advanced, adjusted, testUsed, eventstorepg.ErasedName}

// removePast removes transient, cancelled and replaced decisions, and
// those about removed grants. The replacing decision must be past too;
// one about budgets goes once each of them is set again or removed. A
// cancelled plan replaces none.
const removePast = `WITH past AS (` + pastOrganizations + `), decided AS (
		SELECT organization, e.version, name, data, past.version AS horizon, lead(e.version) OVER of_thing AS next, lead(name) OVER of_thing AS next_name,
			lead(name, 2) OVER of_thing AS then_name
		FROM events e JOIN past USING (organization) WHERE stream = '` + decisionStream + `'
		WINDOW of_thing AS (PARTITION BY organization, CASE name WHEN '` + changeCancelled + `' THEN '` + planChanged + `' ELSE name END ORDER BY e.version)),
	budgets AS (SELECT organization, version, horizon, what, lead(version) OVER (PARTITION BY organization, project, key ORDER BY version) AS next
		FROM decided CROSS JOIN LATERAL (
			SELECT 'set' AS what, b ->> 'project' AS project, b ->> 'key' AS key FROM json_array_elements(data -> 'set') b
			UNION ALL SELECT 'removed', b ->> 'project', b ->> 'key' FROM json_array_elements(data -> 'removed') b) of
		WHERE name = '` + budgetsChanged + `'),
	budgeting AS (SELECT DISTINCT organization, version FROM budgets WHERE what = 'set' AND (next IS NULL OR next > horizon)),
	gone AS (SELECT organization, version FROM decided d WHERE version <= horizon AND CASE
		WHEN name = ANY($2) OR name = '` + changeCancelled + `' THEN true
		WHEN name = '` + budgetsChanged + `' THEN NOT EXISTS (SELECT FROM budgeting b WHERE b.organization = d.organization AND b.version = d.version)
		WHEN name IN ('` + granted + `', '` + revoked + `') THEN NOT EXISTS (
			SELECT FROM grants g WHERE g.organization = d.organization AND g.id IN (d.data ->> 'id', d.data ->> 'grant'))
		WHEN name = '` + planChanged + `' AND next_name = '` + changeCancelled + `' THEN true
		WHEN name = '` + planChanged + `' THEN next <= horizon AND then_name IS DISTINCT FROM '` + changeCancelled + `'
		ELSE next <= horizon END)
	DELETE FROM events e USING gone g WHERE e.organization = g.organization AND stream = '` + decisionStream + `' AND e.version = g.version`

// Prune implements prune.Table.
func (d pastDecisions) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, removePast, d.kept.BooksSince(d.clock()), transient, organizationsPerPrune)
	return tag.RowsAffected(), tag.RowsAffected() > 0, err
}

// Oldest is that of transient decisions: those in force have no age.
func (pastDecisions) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var oldest *time.Time
	err := tx.QueryRow(ctx, `SELECT (SELECT `+decidedAt+` FROM events e WHERE name IN ($1, $2) ORDER BY position LIMIT 1)`, advanced, adjusted).Scan(&oldest)
	return timeOf(oldest), err
}
