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

const grantColumns = `organization, id, amount, remaining, consumed, expired, voided, priority, starts_at, expires_at, rollover_cap,
	source, reason, created_at, status, announced, ended_at, ahead, decision`

// LiveGrants reads the grants that may still change, by organization.
func LiveGrants(ctx context.Context, tx pgx.Tx, organizations []string) (map[string][]ledger.Grant, error) {
	if len(organizations) == 0 {
		return nil, nil
	}
	rows, _ := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants WHERE organization = ANY($1) AND (status = $2 OR status = $3 AND remaining > 0)
		ORDER BY organization, created_at, id`, organizations, ledger.GrantScheduled, ledger.GrantActive)
	live := map[string][]ledger.Grant{}
	err := forEachGrant(rows, func(organization string, g ledger.Grant) { live[organization] = append(live[organization], g) })
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
	rows, _ := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants WHERE organization = $1 AND id = $2`, organization, id)
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

// An ownedGrant is a grant with its organization.
type ownedGrant struct {
	organization string
	ledger.Grant
}

// grantPage is how many grants are compared together.
const grantPage = 1000

// CheckGrantDecisions compares the grants of an organization or of Everyone
// with the decisions about them. Decisions and grants older than since may be gone.
func CheckGrantDecisions(ctx context.Context, tx pgx.Tx, organization string, since, now time.Time) (violations []ledger.Violation, err error) {
	which, args := scope(organization, "organization")
	rows, _ := tx.Query(ctx, `SELECT `+grantColumns+` FROM grants WHERE `+which+ofKeptOrganizations, args...)
	var all []ownedGrant
	if err := forEachGrant(rows, func(id string, g ledger.Grant) { all = append(all, ownedGrant{id, g}) }); err != nil {
		return nil, err
	}
	for first := 0; first < len(all); first += grantPage {
		found, err := compareGrantDecisions(ctx, tx, all[first:min(first+grantPage, len(all))], since, now)
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	missing, err := missingGrants(ctx, tx, which, since, args...)
	return append(violations, missing...), err
}

// ofKeptOrganizations leaves out grants of deleted organizations, which
// are erased after the decisions.
const ofKeptOrganizations = ` AND NOT EXISTS (SELECT FROM erasures d WHERE d.organization = grants.organization AND d.project = '')`

// missingGrants finds decisions since an instant whose grant there is not,
// grants that were voided without a decision, and the other way round.
func missingGrants(ctx context.Context, tx pgx.Tx, which string, since time.Time, args ...any) ([]ledger.Violation, error) {
	since = since.UTC()
	rows, err := tx.Query(ctx, `WITH decided AS (SELECT organization, version, name, data, `+decidedAt+` AS at
			FROM events e WHERE `+which+` AND stream = '`+decisionStream+`'
			AND name IN ('`+granted+`', '`+adjusted+`', '`+revoked+`') AND `+decidedAt+` >= '`+since.Format(time.RFC3339)+`'),
		kept AS (SELECT organization, id, decision, created_at, status, ended_at FROM grants WHERE `+which+ofKeptOrganizations+`)
		SELECT 'organization ' || organization || ' has no grant of decision', version, 0::bigint FROM decided d
			WHERE (name = '`+granted+`' OR name = '`+adjusted+`' AND (data ->> 'bytes')::bigint > 0)
				AND NOT EXISTS (SELECT FROM kept g WHERE g.organization = d.organization AND g.decision = d.version)
		UNION ALL SELECT 'organization ' || organization || ' has not voided a grant by decision', version, 0 FROM decided d
			WHERE name = '`+revoked+`' AND NOT EXISTS (SELECT FROM kept g WHERE g.organization = d.organization AND g.id = d.data ->> 'grant' AND g.status = 4)
		UNION ALL SELECT 'organization ' || d.organization || ' voided at ' || g.ended_at || ' and not at ' || d.at || ' by decision', version, 0 FROM decided d
			JOIN kept g ON g.organization = d.organization AND g.id = d.data ->> 'grant' JOIN organizations o ON o.organization = d.organization
			WHERE name = '`+revoked+`' AND o.clock IS NULL AND g.ended_at <> d.at
		UNION ALL SELECT 'organization ' || organization || ' voided without a decision the grant of decision', decision, 0 FROM kept g
			WHERE status = 4 AND created_at >= '`+since.Format(time.RFC3339)+`'
				AND NOT EXISTS (SELECT FROM decided d WHERE d.organization = g.organization AND name = '`+revoked+`' AND d.data ->> 'grant' = g.id)`, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot look for missing grants: %w", err)
	}
	return violationsOf(rows, ledger.GrantIsDecided)
}

// compareGrantDecisions compares grants with the decisions that made them.
func compareGrantDecisions(ctx context.Context, tx pgx.Tx, grants []ownedGrant, since, now time.Time) (violations []ledger.Violation, err error) {
	ids, numbers := make([]string, len(grants)), make([]int64, len(grants))
	for i, g := range grants {
		ids[i], numbers[i] = g.organization, g.Decision
	}
	owners, err := organizations(ctx, tx, `WHERE o.organization = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	made, err := decisionsOf(ctx, tx, ids, numbers)
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		owner := owners[g.organization]
		if what := g.differs(made[decisionPlace{g.organization, g.Decision}], owner, since, owner.Now(now)); what != "" {
			violations = append(violations, ledger.Violation{Invariant: ledger.GrantIsDecided, Detail: fmt.Sprintf(
				"organization %q, grant %s: %s", g.organization, g.ID, what)})
		}
	}
	return violations, nil
}

// differs returns how a grant differs from the decision that made it, or
// contradicts itself.
func (g ownedGrant) differs(made ledger.Decision, owner ledger.Organization, since, now time.Time) string {
	if what := g.Check(now); what != "" {
		return what
	}
	if made == nil {
		if g.Created.Before(since) {
			return ""
		}
		return fmt.Sprintf("there is no decision %d", g.Decision)
	}
	return g.CheckAgainst(made, owner)
}

// A decisionPlace is a decision's place in its organization.
type decisionPlace struct {
	organization string
	number       int64
}

// decisionsOf reads decisions by their places. An erased one is absent.
func decisionsOf(ctx context.Context, tx pgx.Tx, ids []string, numbers []int64) (map[decisionPlace]ledger.Decision, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, version, name, data FROM unnest($1::text[], $2::bigint[]) AS wanted (organization, version)
		JOIN events e USING (organization, version) WHERE stream = '`+decisionStream+`' AND name <> $3`, ids, numbers, eventstorepg.ErasedName)
	found := map[decisionPlace]ledger.Decision{}
	var at decisionPlace
	var name string
	var data []byte
	_, err := pgx.ForEachRow(rows, []any{&at.organization, &at.number, &name, &data}, func() error {
		decision, err := decodeDecision(name, data)
		found[at] = decision
		return err
	})
	return found, err
}
