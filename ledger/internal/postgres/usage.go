package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

type usageKey struct {
	organization string
	day          time.Time
	project      string
}

type usage struct {
	bytes, entries, errors int64
}

// usageOf adds charges up per organization, day and project.
func usageOf(charges []ledger.Charge) map[usageKey]usage {
	uses := map[usageKey]usage{}
	for _, charge := range charges {
		key := usageKey{charge.Organization, charge.Cause.At.UTC().Truncate(24 * time.Hour), charge.Cause.Project}
		use := uses[key]
		use.bytes += charge.Bytes
		use.entries += int64(charge.Entries)
		use.errors += int64(charge.Errors)
		uses[key] = use
	}
	return uses
}

func queueUsage(batch *pgx.Batch, uses map[usageKey]usage) {
	keys := make([]usageKey, 0, len(uses))
	for key := range uses {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b usageKey) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), a.day.Compare(b.day), cmp.Compare(a.project, b.project))
	})
	n := len(keys)
	ids, days, projects := make([]string, n), make([]time.Time, n), make([]string, n)
	bytes, entries, errors := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, key := range keys {
		use := uses[key]
		ids[i], days[i], projects[i] = key.organization, key.day, key.project
		bytes[i], entries[i], errors[i] = use.bytes, use.entries, use.errors
	}
	batch.Queue(`INSERT INTO usage AS u (organization, day, project, bytes, entries, errors)
		SELECT * FROM unnest($1::text[], $2::date[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
		ON CONFLICT (organization, day, project) DO UPDATE SET bytes = u.bytes + excluded.bytes,
			entries = u.entries + excluded.entries, errors = u.errors + excluded.errors`,
		ids, days, projects, bytes, entries, errors)
}

// A Usage is what one project was charged on one UTC day.
type Usage struct {
	Day     time.Time
	Project string
	Bytes   int64
	Entries int64
	Errors  int64 // how many of the entries carried an error payload
}

// A UsageCursor is a place in the list of an organization's usage. The zero value is the start.
type UsageCursor struct {
	Day     time.Time `json:"d"`
	Project string    `json:"p"`
}

// Cursor is the place of a Usage in the list.
func (u Usage) Cursor() UsageCursor { return UsageCursor{u.Day, u.Project} }

// A UsageQuery selects the usage of days that overlap [From, To), after After, at most Limit.
type UsageQuery struct {
	Project  string // empty: all
	From, To time.Time
	After    UsageCursor
	Limit    int
}

// dayFrom is the first UTC day that begins at t or later.
func dayFrom(t time.Time) time.Time {
	const day = 24 * time.Hour
	return t.UTC().Add(day - time.Nanosecond).Truncate(day)
}

// Usages lists usage by day and project, the latest day first.
func Usages(ctx context.Context, tx pgx.Tx, organization pg.Organization, q UsageQuery) ([]Usage, error) {
	rows, err := tx.Query(ctx, `SELECT day, project, bytes, entries, errors FROM usage
		WHERE organization = $1 AND day >= $2::date AND day < $3::date AND ($4 = '' OR project = $4)
			AND (NOT $5::boolean OR (day, project) < ($6::date, $7))
		ORDER BY day DESC, project DESC LIMIT $8`,
		organization, q.From.UTC(), dayFrom(q.To), q.Project, q.After != UsageCursor{}, q.After.Day, q.After.Project, q.Limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Usage])
}
