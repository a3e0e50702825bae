package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Why a saved search can't be found or changed.
var (
	ErrNoSearch      = errors.New("there is no such saved search")
	ErrNameTaken     = errors.New("there is a saved search of that name")
	ErrSearchChanged = errors.New("it was changed since")
)

// TooMany means that there are as many saved searches or alerts as there may be.
type TooMany struct {
	What  string
	Limit int
}

func (e TooMany) Error() string {
	return fmt.Sprintf("There are %d %s, as many as there may be. Delete one that is not needed.", e.Limit, e.What)
}

// SavedBounds are those of the tables of saved searches and alerts.
func SavedBounds() []prune.Bound {
	return []prune.Bound{
		{Table: "saved_searches", Keeps: "100 shared ones of a project, and 100 of a member", By: "WEIR_MAX_SAVED_SEARCHES"},
		{Table: "alerts", Keeps: "50 of an organization", By: "WEIR_MAX_ALERTS"},
		{Table: "alert_history", Keeps: "the newest 120 evaluations and 60 changes of each alert", By: "its primary key"},
		{Table: "alert_clock", Keeps: "one row", By: "its primary key"},
	}
}

const searchColumns = `s.organization, s.id, s.project, s.owner, s.name, s.query, s.levels, s.environment, s.last, s.from_time, s.to_time, s.fields, s.version,
	s.created_by, s.created_at, s.updated_by, s.updated_at`

func fieldsOfSearch(s *ingest.SavedSearch) []any {
	return []any{&s.Organization, &s.ID, &s.Project, &s.Owner, &s.Name, &s.Query, &s.Levels, &s.Environment, &s.Last, &s.From, &s.To, &s.Fields, &s.Version,
		&s.CreatedBy, &s.CreatedAt, &s.UpdatedBy, &s.UpdatedAt}
}

// A SearchFilter selects saved searches of an organization.
type SearchFilter struct {
	Member  string   // whose own are found beside the shared ones; empty: nobody's
	Project string   // only of this one and of all projects; empty: any
	Only    bool     // none of all projects
	Hidden  []string // not of these projects
	Name    string   // only of this name; empty: any
	After   Named    // in the order of names
	Limit   int
}

// Named is a place in a list of saved searches.
type Named struct{ Name, ID string }

// SavedSearches lists saved searches with their alerts, by name.
func SavedSearches(ctx context.Context, tx pgx.Tx, organization pg.Organization, filter SearchFilter) ([]SearchWithAlert, error) {
	rows, err := tx.Query(ctx, `SELECT `+searchColumns+`, a.state, a.muted_until FROM saved_searches s
		LEFT JOIN alerts a ON a.organization = s.organization AND a.search = s.id
		WHERE s.organization = $1 AND s.owner IN ('', $2) AND ($3 = '' OR s.project = $3 OR s.project = '' AND NOT $4) AND ($5 = '' OR lower(s.name) = lower($5))
		  AND (lower(s.name), s.id) > (lower($6), $7) AND s.project <> ALL ($9) ORDER BY lower(s.name), s.id LIMIT $8`,
		string(organization), filter.Member, filter.Project, filter.Only, filter.Name, filter.After.Name, filter.After.ID, filter.Limit,
		append([]string{}, filter.Hidden...))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (found SearchWithAlert, err error) {
		var state *ingest.AlertState
		err = row.Scan(append(fieldsOfSearch(&found.SavedSearch), &state, &found.MutedUntil)...)
		if state != nil {
			found.State = *state
		}
		return found, err
	})
}

// SavedSearch finds a saved search that a member sees, or ErrNoSearch.
func SavedSearch(ctx context.Context, tx pgx.Tx, organization pg.Organization, id, member string) (s ingest.SavedSearch, err error) {
	err = tx.QueryRow(ctx, `SELECT `+searchColumns+` FROM saved_searches s WHERE s.organization = $1 AND s.id = $2 AND s.owner IN ('', $3)`,
		string(organization), id, member).Scan(fieldsOfSearch(&s)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrNoSearch
	}
	return s, err
}

// InsertSearch keeps a new saved search, if there are fewer than most beside it.
func InsertSearch(ctx context.Context, tx pgx.Tx, s *ingest.SavedSearch, most int) error {
	if err := checkRoom(ctx, tx, s, most); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO saved_searches (organization, id, project, owner, name, query, levels, environment, last, from_time, to_time, fields,
		version, created_by, created_at, updated_by, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, coalesce($7, '{}'::text[]), $8, $9, $10, $11, coalesce($12, '{}'::text[]), $13, $14, $15, $16, $17)`, valuesOf(s)...)
	return taken(err)
}

// checkRoom refuses a saved search where there are most beside it.
func checkRoom(ctx context.Context, tx pgx.Tx, s *ingest.SavedSearch, most int) error {
	if err := lock(ctx, tx, "saved searches", s.Organization); err != nil {
		return err
	}
	var many int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM saved_searches WHERE organization = $1 AND owner = $2 AND (owner <> '' OR project = $3) AND id <> $4`,
		s.Organization, s.Owner, s.Project, s.ID).Scan(&many)
	if err == nil && many >= most {
		return TooMany{"saved searches", most}
	}
	return err
}

// lock has writers of an organization take turns, so that they count right.
func lock(ctx context.Context, tx pgx.Tx, what, organization string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir ingest ' || $1 || ' ' || $2, 0))`, what, organization)
	return err
}

func valuesOf(s *ingest.SavedSearch) []any {
	return []any{s.Organization, s.ID, s.Project, s.Owner, s.Name, s.Query, s.Levels, s.Environment, s.Last, s.From, s.To, s.Fields, s.Version,
		s.CreatedBy, s.CreatedAt, s.UpdatedBy, s.UpdatedAt}
}

func taken(err error) error {
	if pg.IsUnique(err) {
		return ErrNameTaken
	}
	return err
}

// UpdateSearch replaces a saved search of the version before, if there are fewer
// than most beside it, and takes the claim from a process that evaluates its alert.
func UpdateSearch(ctx context.Context, tx pgx.Tx, s *ingest.SavedSearch, most int) error {
	if err := checkRoom(ctx, tx, s, most); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE saved_searches SET project = $3, owner = $4, name = $5, query = $6, levels = coalesce($7, '{}'::text[]), environment = $8,
		last = $9, from_time = $10, to_time = $11, fields = coalesce($12, '{}'::text[]), version = $13, updated_by = $14, updated_at = $15
		WHERE organization = $1 AND id = $2 AND version = $13 - 1`,
		s.Organization, s.ID, s.Project, s.Owner, s.Name, s.Query, s.Levels, s.Environment, s.Last, s.From, s.To, s.Fields, s.Version, s.UpdatedBy, s.UpdatedAt)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrSearchChanged
	}
	if err != nil {
		return taken(err)
	}
	_, err = tx.Exec(ctx, `UPDATE alerts SET claim = claim + 1, claimed_until = '-infinity', streak = 0 WHERE organization = $1 AND search = $2`,
		s.Organization, s.ID)
	return err
}

// DeleteSearch removes a saved search of a version with its alert; 0: of any.
func DeleteSearch(ctx context.Context, tx pgx.Tx, s *ingest.SavedSearch, version int64) error {
	tag, err := tx.Exec(ctx, `DELETE FROM saved_searches WHERE organization = $1 AND id = $2 AND ($3 = 0 OR version = $3)`, s.Organization, s.ID, version)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrSearchChanged
	}
	return err
}

// DeleteSearchesOf removes what members alone have seen, who are gone.
func DeleteSearchesOf(ctx context.Context, tx pgx.Tx, organizations, members []string) error {
	if len(members) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `DELETE FROM saved_searches s USING unnest($1::text[], $2::text[]) AS gone (organization, member)
		WHERE s.organization = gone.organization AND s.owner = gone.member AND s.owner <> ''`, organizations, members)
	if err != nil {
		return fmt.Errorf("cannot remove the searches of %d members: %w", len(members), err)
	}
	return nil
}
