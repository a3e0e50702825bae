package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// A Bucket is the unit of time by which usage is added up.
type Bucket string

// The buckets, in UTC.
const (
	ByHour  Bucket = "hour"
	ByDay   Bucket = "day"
	ByMonth Bucket = "month"
)

// start returns when the bucket of t begins.
func (b Bucket) start(t time.Time) time.Time {
	t = t.UTC()
	switch b {
	case ByHour:
		return t.Truncate(time.Hour)
	case ByMonth:
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	return t.Truncate(24 * time.Hour)
}

// next returns when the bucket ends that begins at start.
func (b Bucket) next(start time.Time) time.Time {
	switch b {
	case ByHour:
		return start.Add(time.Hour)
	case ByMonth:
		return start.AddDate(0, 1, 0)
	}
	return start.AddDate(0, 0, 1)
}

// end returns the first start of a bucket at t or later.
func (b Bucket) end(t time.Time) time.Time {
	start := b.start(t)
	if start.Before(t) {
		return b.next(start)
	}
	return start
}

// A Dimension splits usage, besides time.
type Dimension string

// The dimensions.
const (
	ByProject     Dimension = "project"
	ByKey         Dimension = "key"
	ByEnvironment Dimension = "environment"
	ByOutcome     Dimension = "outcome"
	ByReason      Dimension = "reason"
)

// Dimensions returns all, in the sort order of usage.
func Dimensions() []Dimension {
	return []Dimension{ByProject, ByKey, ByEnvironment, ByOutcome, ByReason}
}

// A UsageQuery selects at most Limit usages of buckets that overlap
// [From, To), after After. Unless by outcome or reason, it counts
// accepted requests.
type UsageQuery struct {
	Bucket   Bucket
	By       map[Dimension]bool // bounded by the dimensions
	Project  string             // empty: all
	From, To time.Time
	After    UsageCursor
	Limit    int
}

// A UsageCursor is a place in an organization's list of usage. The zero
// value is the start.
type UsageCursor struct {
	At          time.Time `json:"d"`
	Project     string    `json:"p"`
	Key         string    `json:"k,omitempty"`
	Environment string    `json:"e,omitempty"`
	Outcome     string    `json:"o,omitempty"`
	Reason      string    `json:"r,omitempty"`
}

// UsagePlace returns a usage's place in the list.
func UsagePlace(u ledger.Use) UsageCursor {
	return UsageCursor{u.Hour, u.Project, u.Key, u.Environment, u.Outcome, u.Reason}
}

// Usages lists usage, the latest first. Hour is the start of the
// bucket; other dimensions are empty unless asked for.
func Usages(ctx context.Context, tx pgx.Tx, organization pg.Organization, q UsageQuery) ([]ledger.Use, error) {
	text, arguments := q.sql(organization)
	rows, err := tx.Query(ctx, text, arguments...)
	if err != nil {
		return nil, err
	}
	var uses []ledger.Use
	u := ledger.Use{Organization: string(organization)}
	fields := []any{&u.Hour, &u.Project, &u.Key, &u.Environment, &u.Outcome, &u.Reason, &u.Requests, &u.Entries, &u.Bytes, &u.Errors, &u.KeyInBody}
	_, err = pgx.ForEachRow(rows, fields, func() error {
		u.Hour = u.Hour.UTC()
		uses = append(uses, u)
		return nil
	})
	return uses, err
}

// sql returns the query; none of its text comes from a client. Time
// comes first, as in the primary key, so a page reads only the days or
// hours it shows.
func (q UsageQuery) sql(organization pg.Organization) (text string, arguments []any) {
	table, column := "usage_days", "day"
	switch q.Bucket {
	case ByHour:
		table, column = "usage_hours", "hour"
	case ByMonth:
		column = "date_trunc('month', day::timestamp)::date"
	}
	from, to := q.Bucket.start(q.From), q.Bucket.end(q.To)
	arguments = []any{organization, from, to, q.Project, q.By[ByOutcome] || q.By[ByReason], ledger.UseAccepted, q.Limit}
	selected, groups, places, order := "", column, "", column+" DESC"
	for i, value := range []string{q.After.Project, q.After.Key, q.After.Environment, q.After.Outcome, q.After.Reason} {
		dimension := string(Dimensions()[i])
		if !q.By[Dimensions()[i]] {
			selected += ", '' AS " + dimension
			continue
		}
		selected, groups, order = selected+", "+dimension, groups+", "+dimension, order+", "+dimension+" DESC"
		if q.After != (UsageCursor{}) {
			arguments = append(arguments, value)
			places += fmt.Sprintf(", $%d", len(arguments))
		}
	}
	behind := ""
	if q.After != (UsageCursor{}) {
		arguments[2] = calendar.Earlier(to, q.Bucket.next(q.Bucket.start(q.After.At)))
		arguments = append(arguments, q.After.At.UTC())
		behind = fmt.Sprintf(" AND (%s) < ($%d%s)", groups, len(arguments), places)
	}
	return `SELECT ` + column + selected + `, sum(requests)::bigint, sum(entries)::bigint, sum(bytes)::bigint, sum(errors)::bigint, sum(key_in_body)::bigint
		FROM ` + table + ` WHERE organization = $1 AND ` + rawColumn(q.Bucket) + ` >= $2 AND ` + rawColumn(q.Bucket) + ` < $3
			AND ($4 = '' OR project = $4) AND ($5::boolean OR outcome = $6)` + behind + `
		GROUP BY ` + groups + ` ORDER BY ` + order + ` LIMIT $7`, arguments
}

// rawColumn is the time column of a bucket's table.
func rawColumn(b Bucket) string {
	if b == ByHour {
		return "hour"
	}
	return "day"
}
