package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	rows, _ := tx.Query(ctx, text, arguments...)
	var uses []ledger.Use
	u := ledger.Use{Organization: string(organization)}
	fields := []any{&u.Hour, &u.Project, &u.Key, &u.Environment, &u.Outcome, &u.Reason, &u.Requests, &u.Entries, &u.Bytes, &u.Errors, &u.KeyInBody}
	_, err := pgx.ForEachRow(rows, fields, func() error {
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

// SaveUses adds uses to the usage by hour and by day.
func SaveUses(ctx context.Context, tx pgx.Tx, uses []ledger.Use) error {
	var batch pgx.Batch
	sums := newUseSums()
	for _, use := range uses {
		sums.add(use)
	}
	sums.queue(&batch)
	return tx.SendBatch(ctx, &batch).Close()
}

// A useKey identifies uses that are added up.
type useKey struct {
	organization, project, key, environment, outcome, reason string
	hour                                                     int64
}

// useSums adds up uses of one key.
type useSums struct {
	at   map[useKey]int // index in sums; bounded by the records of a transaction
	sums []ledger.Use
}

func newUseSums() *useSums { return &useSums{at: map[useKey]int{}} }

func (s *useSums) add(use ledger.Use) {
	alike := useKey{use.Organization, use.Project, use.Key, use.Environment, use.Outcome, use.Reason, use.Hour.Unix()}
	at, known := s.at[alike]
	if !known {
		s.at[alike] = len(s.sums)
		s.sums = append(s.sums, use)
		return
	}
	sum := &s.sums[at]
	sum.Requests, sum.Entries, sum.Bytes = sum.Requests+use.Requests, sum.Entries+use.Entries, sum.Bytes+use.Bytes
	sum.Errors, sum.KeyInBody = sum.Errors+use.Errors, sum.KeyInBody+use.KeyInBody
}

// queue adds them to the usage by hour and by day.
func (s *useSums) queue(batch *pgx.Batch) {
	days := newUseSums()
	for _, use := range s.sums {
		use.Hour = use.Hour.Truncate(24 * time.Hour)
		days.add(use)
	}
	queueUsage(batch, "usage_hours", "hour", "timestamptz", s.sorted())
	queueUsage(batch, "usage_days", "day", "date", days.sorted())
}

// sorted returns the sums in the order of locking.
func (s *useSums) sorted() []ledger.Use {
	slices.SortFunc(s.sums, compareUses)
	return s.sums
}

func compareUses(a, b ledger.Use) int {
	return cmp.Or(cmp.Compare(a.Organization, b.Organization), a.Hour.Compare(b.Hour), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Key, b.Key),
		cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason))
}

// queueUsage adds sums to a table by its time column and type.
func queueUsage(batch *pgx.Batch, table, at, atType string, sums []ledger.Use) {
	n := len(sums)
	texts := [6][]string{}
	for i := range texts {
		texts[i] = make([]string, n)
	}
	numbers := [5][]int64{}
	for i := range numbers {
		numbers[i] = make([]int64, n)
	}
	times := make([]time.Time, n)
	for i, use := range sums {
		times[i] = use.Hour
		for column, text := range []string{use.Organization, use.Project, use.Key, use.Environment, use.Outcome, use.Reason} {
			texts[column][i] = text
		}
		for column, number := range []int64{use.Requests, use.Entries, use.Bytes, use.Errors, use.KeyInBody} {
			numbers[column][i] = number
		}
	}
	batch.Queue(`INSERT INTO `+table+` AS u (organization, `+at+`, project, key, environment, outcome, reason, requests, entries, bytes, errors, key_in_body)
		SELECT * FROM unnest($1::text[], $2::`+atType+`[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
			$8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
		ON CONFLICT (organization, `+at+`, project, key, environment, outcome, reason) DO UPDATE SET
			requests = u.requests + excluded.requests, entries = u.entries + excluded.entries, bytes = u.bytes + excluded.bytes,
			errors = u.errors + excluded.errors, key_in_body = u.key_in_body + excluded.key_in_body`,
		texts[0], times, texts[1], texts[2], texts[3], texts[4], texts[5], numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
}

// TakeTallies stores the sequences of tallies and returns those not
// counted before. They are in log order, in which a process's sequences grow.
func TakeTallies(ctx context.Context, tx pgx.Tx, booked time.Time, tallies []ledger.Tally) ([]ledger.Tally, error) {
	counted, err := lockSequences(ctx, tx, booked, tallies)
	if err != nil {
		return nil, err
	}
	var fresh []ledger.Tally
	for _, t := range tallies {
		if source := sourceOf(t); t.Sequence > counted[source] {
			counted[source] = t.Sequence
			fresh = append(fresh, t)
		}
	}
	return fresh, saveSequences(ctx, tx, booked, counted)
}

// A tallySource identifies a sequence.
type tallySource struct{ organization, process string }

func sourceOf(t ledger.Tally) tallySource { return tallySource{t.Organization, t.Process} }

// lockSequences locks the sequences of tallies and returns the last
// counted of each.
func lockSequences(ctx context.Context, tx pgx.Tx, booked time.Time, tallies []ledger.Tally) (map[tallySource]int64, error) {
	counted := map[tallySource]int64{}
	for _, t := range tallies {
		counted[sourceOf(t)] = 0
	}
	if err := saveSequences(ctx, tx, booked, counted); err != nil {
		return nil, err
	}
	organizations, processes := columnsOf(counted)
	rows, _ := tx.Query(ctx, `SELECT organization, process, sequence FROM tallies
		JOIN unnest($1::text[], $2::text[]) AS wanted (organization, process) USING (organization, process)`, organizations, processes)
	var source tallySource
	var sequence int64
	_, err := pgx.ForEachRow(rows, []any{&source.organization, &source.process, &sequence}, func() error {
		counted[source] = sequence
		return nil
	})
	return counted, err
}

// saveSequences raises and locks sequences; a higher one stays.
func saveSequences(ctx context.Context, tx pgx.Tx, booked time.Time, counted map[tallySource]int64) error {
	organizations, processes := columnsOf(counted)
	sequences := make([]int64, len(organizations))
	for i := range organizations {
		sequences[i] = counted[tallySource{organizations[i], processes[i]}]
	}
	_, err := tx.Exec(ctx, `INSERT INTO tallies AS t (organization, process, sequence, at)
		SELECT *, $4::timestamptz FROM unnest($1::text[], $2::text[], $3::bigint[])
		ON CONFLICT (organization, process) DO UPDATE SET sequence = greatest(t.sequence, excluded.sequence), at = excluded.at`,
		organizations, processes, sequences, booked)
	return err
}

// columnsOf returns the sources, sorted.
func columnsOf(counted map[tallySource]int64) (organizations, processes []string) {
	sources := make([]tallySource, 0, len(counted))
	for source := range counted {
		sources = append(sources, source)
	}
	slices.SortFunc(sources, func(a, b tallySource) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), cmp.Compare(a.process, b.process))
	})
	for _, source := range sources {
		organizations, processes = append(organizations, source.organization), append(processes, source.process)
	}
	return organizations, processes
}

// withoutKeys selects usage from before keys and requests were counted.
const withoutKeys = `outcome = 'accepted' AND key = '' AND requests = 0 AND entries > 0`

// usageAndCharges compares usage with the charges since the start of a
// period ($1), by organization, project and key, where a condition
// holds, another for transfers. A project with usage without keys is compared whole. Late
// charges are usage of their own period.
func usageAndCharges(condition, charges string) string {
	return `WITH old AS (SELECT DISTINCT organization, project FROM usage_days
			WHERE ` + condition + ` AND day >= ($1::timestamptz AT TIME ZONE 'UTC')::date AND ` + withoutKeys + `),
		charged AS (SELECT organization, project, key, sum(amount)::bigint AS bytes FROM transfers
			WHERE ` + charges + ` AND reason IN (2, 4) AND effective_at >= $1 AND coalesce(of_period, effective_at) >= $1 GROUP BY 1, 2, 3),
		used AS (SELECT organization, project, key, sum(bytes)::bigint AS bytes FROM usage_days
			WHERE ` + condition + ` AND outcome = 'accepted' AND day >= ($1::timestamptz AT TIME ZONE 'UTC')::date GROUP BY 1, 2, 3),
		both_sides AS (SELECT organization, project, key, bytes AS used, 0 AS charged FROM used
			UNION ALL SELECT organization, project, key, 0, bytes FROM charged)
		SELECT concat_ws(', ', organization, project, nullif(key, '')), sum(used)::bigint, sum(charged)::bigint
		FROM (SELECT organization, project, used, charged, CASE WHEN EXISTS (SELECT FROM old WHERE old.organization = b.organization AND old.project = b.project)
			THEN '' ELSE key END AS key FROM both_sides b) compared
		GROUP BY organization, project, key HAVING sum(used) <> sum(charged)`
}

// CheckCharges compares the usage of an organization or of Everyone with
// its charges since the start of a period.
func CheckCharges(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	condition, args := scope(organization, "organization", since)
	return differences(ctx, tx, ledger.UsageIsCharges, usageAndCharges(condition, byKey(condition)), append([]any{customPlan}, args...)...)
}

// hoursAndDays compares hours with days of usage that meet a condition
// of organization and day. A second condition selects the hours, as no
// index has their day. Days with usage from before there were hours are left out.
func hoursAndDays(condition, hours string) string {
	const alike = `organization, day, project, key, environment, outcome, reason`
	return `SELECT concat_ws(', ', ` + alike + `, what), sum(hours)::bigint, sum(days)::bigint
		FROM (SELECT ` + alike + `, what, n AS days, 0 AS hours FROM usage_days ` + eachNumber + `
			UNION ALL SELECT organization, (hour AT TIME ZONE 'UTC')::date, project, key, environment, outcome, reason, what, 0, n
				FROM usage_hours ` + eachNumber + ` WHERE ` + hours + `) both_sides
		WHERE ` + condition + ` AND NOT EXISTS (SELECT FROM usage_days old
			WHERE old.organization = both_sides.organization AND old.day = both_sides.day AND ` + withoutKeys + `)
		GROUP BY ` + alike + `, what HAVING sum(hours) <> sum(days)`
}

// eachNumber makes a row for each number of usage.
const eachNumber = `CROSS JOIN LATERAL (VALUES ('bytes', bytes), ('entries', entries), ('requests', requests), ('errors', errors),
	('keys in bodies', key_in_body))
	AS number (what, n)`

// CheckHours compares the hours of an organization or of Everyone with its
// days since an instant.
func CheckHours(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	condition, args := scope(organization, "organization", since)
	return differences(ctx, tx, ledger.HoursAreDays, hoursAndDays(condition+` AND day >= $1::date`, `hour >= date_trunc('day', $1::timestamptz, 'UTC')`), args...)
}

// CheckUsage compares hours with days of the books' organizations, on
// the last day that a range touched.
func CheckUsage(ctx context.Context, tx pgx.Tx, r ledger.Range, keys map[BookKey]bool) ([]ledger.Violation, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	organizations := make([]string, 0, len(keys))
	for key := range keys {
		organizations = append(organizations, key.Organization)
	}
	return differences(ctx, tx, ledger.HoursAreDays, hoursAndDays(`organization = ANY($1) AND day = $2::date`, `hour >= $2 AND hour < $2 + interval '1 day'`),
		organizations, r.To.UTC().Truncate(24*time.Hour))
}
