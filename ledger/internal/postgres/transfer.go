package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

var transferColumns = []string{
	"effective_at", "offset", "period_start", "amount", "booked_at", "of_period", "partition", "entries",
	"source", "line", "from_account", "to_account", "reason", "organization", "project", "key", "event", "grant_id",
}

// copyTransfers copies transfers into the partitions of their days:
// COPY is refused on a table with row level security. The domain and
// the constraints check the rows.
func copyTransfers(ctx context.Context, tx pgx.Tx, booked time.Time, opened map[string]*ledger.Books) error {
	days := transfersByDay(opened)
	for _, start := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		day := days[start]
		err := pg.Copy(ctx, tx, pg.DayPartition("transfers", start), transferColumns, len(day), func(i int, row *pg.CopyRow) { copyTransfer(row, day[i], booked) })
		if err != nil {
			return err
		}
	}
	return nil
}

// transfersByDay groups the transfers of opened books by their UTC day,
// each day's by organization.
func transfersByDay(opened map[string]*ledger.Books) map[time.Time][]*ledger.Transfer {
	days := map[time.Time][]*ledger.Transfer{}
	var day time.Time
	var of []*ledger.Transfer // of the day, almost always all
	for _, id := range sortedKeys(opened) {
		transfers := opened[id].Transfers
		for i := range transfers {
			if on := transfers[i].Effective().UTC().Truncate(24 * time.Hour); !on.Equal(day) {
				day, of = on, days[on]
			}
			of = append(of, &transfers[i])
			days[day] = of
		}
	}
	return days
}

// copyTransfer appends the values of transferColumns.
func copyTransfer(row *pg.CopyRow, t *ledger.Transfer, booked time.Time) {
	row.Time(t.Effective())
	row.Int64(t.Cause.Offset)
	row.Time(t.Period.Start)
	row.Int64(t.Amount)
	row.Time(booked)
	if t.Of.IsZero() {
		row.Null()
	} else {
		row.Time(t.Of)
	}
	row.Int32(int32(t.Cause.Partition)) //nolint:gosec // small
	row.Int32(int32(t.Entries))         //nolint:gosec // small
	row.Int16(int16(t.Cause.Source))
	row.Int16(int16(t.Line)) //nolint:gosec // small
	row.Int16(int16(t.From))
	row.Int16(int16(t.To))
	row.Int16(int16(t.Reason))
	row.Text(t.Organization)
	row.Text(t.Cause.Project)
	row.Text(t.Cause.Key)
	row.Text(t.Cause.Event)
	row.Text(t.Grant)
}

// A BookedTransfer is a transfer and when it was booked.
type BookedTransfer struct {
	ledger.Transfer
	EffectiveAt time.Time
	BookedAt    time.Time
}

// ofOrganization selects the transfers of organization $1 by their key.
// Its hash has 64 bits: with 32, decisions of two among 100,000
// organizations at the same instant could share a key.
const ofOrganization = `organization = $1 AND organization_hash = hashtextextended($1, 0)`

// customPlan plans a query for its values each time. A generic plan
// locks the transfers of all days.
const customPlan = pgx.QueryExecModeCacheDescribe

// BalancesAt adds up a book's transfers booked at or before an instant.
func BalancesAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, at time.Time) (ledger.Balances, error) {
	rows, _ := tx.Query(ctx, `SELECT from_account, to_account, sum(amount)::bigint FROM transfers
		WHERE `+ofOrganization+` AND effective_at >= $2 AND effective_at < $3 AND period_start = $2 AND booked_at <= $4
		GROUP BY from_account, to_account`, customPlan, organization, period.Start, period.End, at)
	return sumTransfers(rows)
}

// sumTransfers adds up rows of (from, to, amount).
func sumTransfers(rows pgx.Rows) (ledger.Balances, error) {
	var balances ledger.Balances
	var t ledger.Transfer
	_, err := pgx.ForEachRow(rows, []any{&t.From, &t.To, &t.Amount}, func() error {
		return apply(t, &balances)
	})
	return balances, err
}

// apply adds a transfer read from the database.
func apply(t ledger.Transfer, balances *ledger.Balances) error {
	if max(int(t.From), int(t.To)) >= len(balances) {
		return fmt.Errorf("cannot add a transfer from %s to %s", t.From, t.To)
	}
	balances.Apply(t)
	return nil
}

// A TransferCursor is a place in an organization's list of transfers.
// The zero value is the start.
type TransferCursor struct {
	Effective time.Time     `json:"t"`
	Source    ledger.Source `json:"s"`
	Partition int32         `json:"p"`
	Offset    int64         `json:"o"`
	Line      int16         `json:"l"`
}

// Cursor returns the transfer's place in the list.
func (t BookedTransfer) Cursor() TransferCursor {
	return TransferCursor{t.EffectiveAt, t.Cause.Source, int32(t.Cause.Partition), t.Cause.Offset, int16(t.Line)} //nolint:gosec // as the columns have them
}

// A TransferQuery selects at most Limit transfers that took effect in
// [From, To), after After.
type TransferQuery struct {
	From, To time.Time
	After    TransferCursor
	Limit    int

	// Filters; zero: any. No index has them, so a query reads at most
	// ScanLimit transfers; zero: 50,000.
	Reason              ledger.Reason
	Project, Key, Grant string
	ScanLimit           int
}

// filters reports whether the query has filters.
func (q TransferQuery) filters() bool {
	return q.Reason != 0 || q.Project != "" || q.Key != "" || q.Grant != ""
}

// A TransferPage is what a query found.
type TransferPage struct {
	Transfers []BookedTransfer
	Next      *TransferCursor // where it stopped at ScanLimit; nil: it did not
}

// Transfers lists transfers, the latest first. It reads period by
// period, to lock the days of one at a time.
func Transfers(ctx context.Context, tx pgx.Tx, organization pg.Organization, q TransferQuery) (TransferPage, error) {
	list := transferList{tx: tx, organization: organization, query: q, unread: max(q.Limit, cmp.Or(q.ScanLimit, 50_000))}
	periods, err := list.periods(ctx)
	for i := 0; err == nil && i < len(periods) && !list.ended(); i++ {
		err = list.look(ctx, periods[i])
	}
	return list.page, err
}

// A transferList is a list as far as it is read.
type transferList struct {
	tx           pgx.Tx
	organization pg.Organization
	query        TransferQuery
	unread       int // how many may still be read
	page         TransferPage
}

func (l *transferList) ended() bool { return l.left() == 0 || l.page.Next != nil }

func (l *transferList) left() int { return l.query.Limit - len(l.page.Transfers) }

// periods returns those with transfers to list, the latest first.
func (l *transferList) periods(ctx context.Context) ([]calendar.Period, error) {
	q := l.query
	rows, err := l.tx.Query(ctx, `SELECT period_start, period_end FROM books WHERE organization = $1 AND period_end > $2 AND period_start < $3
		AND (NOT $4::boolean OR period_start <= $5) ORDER BY period_start DESC`,
		l.organization, q.From, q.To, q.After != TransferCursor{}, q.After.Effective)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[calendar.Period])
}

// look reads the matching transfers of a period.
func (l *transferList) look(ctx context.Context, period calendar.Period) error {
	q, unread := l.query, l.left()
	if q.filters() {
		unread = l.unread
	}
	args := l.args(period, unread, l.left(), int(q.Reason), q.Project, q.Key, q.Grant)
	if err := pg.QueryInSavepoint(ctx, l.tx, selectTransfers, args, l.collect); err != nil || l.left() == 0 || !q.filters() {
		return err
	}
	return pg.QueryInSavepoint(ctx, l.tx, selectLastRead, l.args(period, l.unread), l.stop)
}

// latest selects a period's transfers from the cursor on, as many as
// may be read.
const latest = `(SELECT * FROM transfers
		WHERE ` + ofOrganization + ` AND effective_at >= $2 AND effective_at < $3
			AND (NOT $4::boolean OR (effective_at, source, partition, "offset", line) < ($5, $6, $7, $8, $9))
		` + latestFirst + ` LIMIT $10) AS latest`

const latestFirst = `ORDER BY effective_at DESC, source DESC, partition DESC, "offset" DESC, line DESC`

func (l *transferList) args(period calendar.Period, more ...any) []any {
	from, to, after := calendar.Later(period.Start, l.query.From), calendar.Earlier(period.End, l.query.To), l.query.After
	return append([]any{l.organization, from, to, after != TransferCursor{},
		after.Effective, after.Source, after.Partition, after.Offset, after.Line}, more...)
}

const selectTransfers = `SELECT effective_at, source, partition, "offset", line, period_start, from_account, to_account,
		amount, entries, reason, project, key, event, booked_at, grant_id, of_period FROM ` + latest + `
	WHERE ($12 = 0 OR reason = $12) AND ($13 = '' OR project = $13) AND ($14 = '' OR key = $14) AND ($15 = '' OR grant_id = $15)
	` + latestFirst + ` LIMIT $11`

// collect adds rows to the page.
func (l *transferList) collect(rows pgx.Rows) error {
	var t BookedTransfer
	var of *time.Time
	t.Organization = string(l.organization)
	_, err := pgx.ForEachRow(rows, []any{
		&t.EffectiveAt, &t.Cause.Source, &t.Cause.Partition, &t.Cause.Offset, &t.Line, &t.Period.Start, &t.From, &t.To,
		&t.Amount, &t.Entries, &t.Reason, &t.Cause.Project, &t.Cause.Key, &t.Cause.Event, &t.BookedAt, &t.Grant, &of,
	}, func() error {
		t.EffectiveAt, t.BookedAt, t.Period.Start, t.Of = t.EffectiveAt.UTC(), t.BookedAt.UTC(), t.Period.Start.UTC(), timeOf(of)
		l.page.Transfers = append(l.page.Transfers, t)
		return nil
	})
	return err
}

// selectLastRead selects the last transfer read and the number read.
const selectLastRead = `SELECT count(*) OVER (), effective_at, source, partition, "offset", line FROM ` + latest + `
	ORDER BY effective_at, source, partition, "offset", line LIMIT 1`

// stop ends the list at ScanLimit.
func (l *transferList) stop(rows pgx.Rows) error {
	var read int
	var at TransferCursor
	_, err := pgx.ForEachRow(rows, []any{&read, &at.Effective, &at.Source, &at.Partition, &at.Offset, &at.Line}, func() error { return nil })
	if l.unread -= read; err == nil && l.unread == 0 {
		l.page.Next = &at
	}
	return err
}

// reasons are the accounts between which transfers are made, and why.
const reasons = `(0, 1, 1), (0, 1, 5), (0, 4, 1), (0, 4, 8), (3, 0, 3), (1, 2, 3), (4, 2, 3), (3, 7, 3), (1, 2, 2), (4, 2, 2), (0, 3, 2), (0, 7, 2),
	(1, 2, 4), (4, 2, 4), (0, 3, 4), (0, 7, 4), (1, 2, 8), (4, 2, 8), (0, 3, 8), (1, 5, 6), (4, 5, 6), (4, 6, 7)`

// oddTransfers finds transfers booked since $1 that no books make: in a
// period that is not theirs, of a reason that there is not, with a grant
// where no grant's account is, with entries that are no charge's, and
// those of one cause that do not belong together or are not all there. (Of
// a decision to do what was due the first may be gone with their day.)
// Those of decisions ($2: their source) name the decision.
const oddTransfers = `WITH kept AS (SELECT * FROM transfers WHERE booked_at >= $1)
	SELECT 'organization ' || t.organization || ', transfer of ' || event || ' outside its period', line::bigint, 0::bigint FROM kept t
		LEFT JOIN books b USING (organization, period_start) WHERE effective_at < b.period_start OR effective_at >= b.period_end OR b.period_end IS NULL
	UNION ALL SELECT 'organization ' || organization || ', transfer of ' || event || ' between accounts', from_account, to_account FROM kept
		WHERE (grant_id <> '') <> (4 IN (from_account, to_account)) OR entries < 0 OR entries > 0 AND reason NOT IN (2, 4)
			OR of_period IS NOT NULL AND reason NOT IN (4, 8)
	UNION ALL SELECT 'organization ' || organization || ', transfer of ' || event || ' for no reason', reason, source FROM kept
		WHERE (from_account, to_account, reason) NOT IN (` + reasons + `) OR source NOT BETWEEN 0 AND $2
	UNION ALL SELECT 'organization ' || organization || ', sum of transfers for no reason', reason, source FROM folded_transfers
		WHERE (from_account, to_account, reason) NOT IN (` + reasons + `) OR source NOT BETWEEN 0 AND $2
	UNION ALL SELECT 'organization ' || organization || ', lines of ' || min(event), max(line) + 1, count(*) FROM kept
		GROUP BY organization, source, partition, "offset" HAVING max(line) + 1 <> count(*) AND max(split_part(event, '/', 3)) = ''
	UNION ALL SELECT 'organization ' || organization || ', causes of ' || min(event),
		count(DISTINCT (project, key, booked_at, split_part(event, '/', 1))), 1 FROM kept
		GROUP BY organization, source, partition, "offset" HAVING count(DISTINCT (project, key, booked_at, split_part(event, '/', 1))) > 1
	UNION ALL SELECT 'organization ' || t.organization || ', transfer of ' || event || ' by decision', "offset", o.decisions FROM kept t
		JOIN organizations o USING (organization)
		LEFT JOIN events e ON e.organization = t.organization AND stream = '` + decisionStream + `' AND version = "offset"
		WHERE source = $2 AND (partition <> 0 OR "offset" > o.decisions OR event LIKE 'decision/%' AND split_part(event, '/', 2) <> "offset"::text
				OR event NOT LIKE 'decision/%' AND o.clock IS NULL OR event LIKE 'decision/%' AND (project, key) <> ('', '')
			OR e.version IS NOT NULL AND ` + notErased + ` AND o.clock IS NULL AND (booked_at > ` + decidedAt + `
				OR effective_at NOT IN (period_start, ` + decidedAt + `, (o.plans -> 0 ->> 'from')::timestamptz)
				AND (extract(epoch FROM effective_at) * 1000000)::bigint - coalesce(nullif(split_part(event, '/', 3), ''), '0')::bigint NOT IN (-1, 0)))`

// linesAndTransfers compares the lines of periods that begin at $1 or
// later, of which all transfers are kept, with the transfers, and those of
// adjustments with the decisions. A line's kind is the domain's.
const linesAndTransfers = `WITH made AS (
		SELECT organization, period_start, CASE WHEN from_account = 0 AND to_account = 1 AND reason = 5 THEN 2 WHEN from_account = 0 AND to_account = 1 THEN 1
				WHEN from_account = 0 AND to_account = 4 THEN 3 WHEN from_account = 4 AND to_account = 2 THEN 4
				WHEN from_account = 4 AND to_account = 5 THEN 5 WHEN from_account = 4 AND to_account = 6 THEN 6 END AS kind,
			grant_id AS subject, period_start AS of_period, amount AS bytes FROM transfers WHERE period_start >= $1
		UNION ALL SELECT organization, period_start, 7, '', of_period, amount FROM transfers WHERE period_start >= $1 AND source = 0 AND reason = 4
		UNION ALL SELECT t.organization, t.period_start, 8, e.data ->> 'id',
				coalesce((e.data ->> 'period_start')::timestamptz, t.period_start), (e.data ->> 'bytes')::bigint
			FROM events e JOIN LATERAL (
				SELECT organization, period_start FROM transfers t WHERE t.organization = e.organization
					AND organization_hash = hashtextextended(e.organization, 0) AND source = 3 AND "offset" = e.version LIMIT 1) t
				ON true
			WHERE stream = '` + decisionStream + `' AND name = '` + adjusted + `' AND t.period_start >= $1),
		sums AS (SELECT organization, period_start, kind, subject, of_period, sum(bytes)::bigint AS bytes FROM made WHERE kind IS NOT NULL GROUP BY 1, 2, 3, 4, 5)
	SELECT concat_ws(', ', organization, (period_start AT TIME ZONE 'UTC')::date, 'line ' || kind, nullif(subject, '')), coalesce(l.bytes, 0), coalesce(s.bytes, 0)
		FROM (SELECT * FROM period_lines WHERE period_start >= $1) l FULL JOIN sums s USING (organization, period_start, kind, subject, of_period)
		WHERE l.bytes IS DISTINCT FROM s.bytes`
