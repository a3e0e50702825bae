package parked

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
)

const (
	headerOrganization = "ce_organization"
	noOrganization     = "*" // records without an organization: only the system sees them
	longestReason      = 8 << 10
)

const parkRecord = `
INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, key, value, header_names, header_values, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (organization, group_name, topic, partition, record_offset) DO UPDATE
   SET key = excluded.key, value = excluded.value, header_names = excluded.header_names, header_values = excluded.header_values,
       reason = excluded.reason, attempts = bus_parked.attempts + 1, failed_at = now(), replay_asked_at = NULL`

// Add parks a record with the reason, or notes that it failed again. tx
// sees the rows of every organization.
func Add(ctx context.Context, tx pgx.Tx, group string, r bus.Record, reason error) error {
	return add(ctx, tx, group, r, organizationOf(r), storable(reason.Error()))
}

func add(ctx context.Context, tx pgx.Tx, group string, r bus.Record, organization, reason string) error {
	names, values := splitHeaders(r.Headers)
	_, err := tx.Exec(ctx, parkRecord, organization, group, r.Topic, r.Partition, r.Offset, r.Time, r.Key, r.Value, names, values, reason)
	return err
}

func organizationOf(r bus.Record) string {
	return cmp.Or(storable(r.Header(headerOrganization)), noOrganization)
}

// ReplayRequested reports whether a replay of a parked record of these
// partitions is requested.
func ReplayRequested(ctx context.Context, tx pgx.Tx, group, topic string, partitions []int) (requested bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM bus_parked
		WHERE group_name = $1 AND topic = $2 AND partition = ANY($3) AND replay_asked_at IS NOT NULL)`, group, topic, partitions).Scan(&requested)
	return requested, err
}

// NextToReplay locks the first record after a position whose
// replay is requested.
func NextToReplay(ctx context.Context, tx pgx.Tx, group, topic string, partitions []int, after bus.Position) (r bus.Record, found bool, err error) {
	rows, err := tx.Query(ctx, parkedColumns+` WHERE group_name = $1 AND topic = $2 AND partition = ANY($3) AND replay_asked_at IS NOT NULL
		AND (partition, record_offset) > ($4, $5) ORDER BY partition, record_offset LIMIT 1 FOR UPDATE SKIP LOCKED`,
		group, topic, partitions, after.Partition, after.Offset)
	if err != nil {
		return r, false, err
	}
	all, err := pgx.CollectRows(rows, scanParked)
	if err != nil || len(all) == 0 {
		return r, false, err
	}
	return all[0].Record, true, nil
}

const atPosition = ` WHERE group_name = $1 AND topic = $2 AND partition = $3 AND record_offset = $4`

// Remove deletes a record that was applied, whomever its handler acted for.
func Remove(ctx context.Context, tx pgx.Tx, group, topic string, at bus.Position) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM bus_parked`+atPosition, group, topic, at.Partition, at.Offset)
	return err
}

// FailAgain notes that a replay failed, and clears its request. A
// record emptied meanwhile stays so.
func FailAgain(ctx context.Context, tx pgx.Tx, group, topic string, at bus.Position, reason error) error {
	_, err := tx.Exec(ctx, `UPDATE bus_parked SET reason = $5, attempts = attempts + 1, failed_at = clock_timestamp(), replay_asked_at = NULL`+
		atPosition+` AND `+unemptied, group, topic, at.Partition, at.Offset, storable(reason.Error()))
	return err
}

func splitHeaders(headers []bus.Header) (names []string, values [][]byte) {
	names, values = make([]string, len(headers)), make([][]byte, len(headers))
	for i, h := range headers {
		names[i], values[i] = storable(h.Key), h.Value
	}
	return names, values
}

// storable makes text that PostgreSQL accepts: valid UTF-8 without NUL,
// of bounded length. Parking must not fail on its reason.
func storable(s string) string {
	if len(s) > longestReason {
		s = s[:longestReason]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Item is a record that could not be applied.
type Item struct {
	Group        string
	Organization string // "*": none
	Record       bus.Record
	Reason       string // of the last attempt
	Attempts     int
	ParkedAt     time.Time
	FailedAt     time.Time // at the last attempt
	AskedAt      time.Time // when a replay was requested; zero: not, or it failed since
}

const parkedColumns = `SELECT group_name, organization, topic, partition, record_offset, record_time, key, value, header_names, header_values,
	reason, attempts, parked_at, failed_at, replay_asked_at FROM bus_parked`

func scanParked(row pgx.CollectableRow) (p Item, err error) {
	var names []string
	var values [][]byte
	var asked *time.Time
	r := &p.Record
	err = row.Scan(&p.Group, &p.Organization, &r.Topic, &r.Partition, &r.Offset, &r.Time, &r.Key, &r.Value, &names, &values,
		&p.Reason, &p.Attempts, &p.ParkedAt, &p.FailedAt, &asked)
	for i, name := range names {
		r.Headers = append(r.Headers, bus.Header{Key: name, Value: values[i]})
	}
	if asked != nil {
		p.AskedAt = *asked
	}
	r.Time = r.Time.UTC()
	return p, err
}

// Filter selects parked records with content; a zero field selects all.
type Filter struct {
	Group, Topic string
	Partition    *int
	Offset       *int64
}

const chosen = ` WHERE ` + unemptied + ` AND ($1 = '' OR group_name = $1) AND ($2 = '' OR topic = $2) AND ($3::integer IS NULL OR partition = $3)
	AND ($4::bigint IS NULL OR record_offset = $4)`

func (f Filter) args() []any { return []any{f.Group, f.Topic, f.Partition, f.Offset} }

// List returns at most limit parked records of the schema of tx,
// ordered by group, topic, partition and offset.
func List(ctx context.Context, tx pgx.Tx, filter Filter, limit int) ([]Item, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, parkedColumns+chosen+` ORDER BY group_name, topic, partition, record_offset LIMIT $5`, append(filter.args(), limit)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanParked)
}

// Replay asks each record's consumer to apply it again, and returns how
// many. A consumer looks every ParkedWatch.
func Replay(ctx context.Context, tx pgx.Tx, filter Filter) (int64, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, `UPDATE bus_parked SET replay_asked_at = coalesce(replay_asked_at, clock_timestamp())`+chosen, filter.args()...)
	return tag.RowsAffected(), err
}

// Count returns how many records are parked in the schema of tx, and
// when the oldest was.
func Count(ctx context.Context, tx pgx.Tx) (count int64, oldest time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, oldest, err
	}
	var parked *time.Time
	err = tx.QueryRow(ctx, `SELECT count(*), min(parked_at) FROM bus_parked WHERE `+unemptied).Scan(&count, &parked)
	if parked != nil {
		oldest = parked.UTC()
	}
	return count, oldest, err
}

// The reasons of emptied records. Their places stay until they are old,
// so that a comparison with the log finds no gap.
const (
	erasedReason    = "it is erased: its organization or project is deleted"
	discardedReason = "it is discarded"
)

// unemptied is the condition for records with content.
const unemptied = `reason NOT IN ('` + erasedReason + `', '` + discardedReason + `')`

const empty = `UPDATE bus_parked SET key = NULL, value = NULL, header_names = '{}', header_values = '{}', replay_asked_at = NULL, reason = `

const eraseRecords = empty + `'` + erasedReason + `' WHERE ctid = ANY (ARRAY(SELECT ctid FROM bus_parked WHERE ` + unemptied + `
	AND organization = $1 AND ($2 = '' OR convert_to($2, 'UTF8') = header_values[array_position(header_names, 'ce_project')]) LIMIT $3 FOR UPDATE))`

// Erase empties at most limit records of an organization or of one of its
// projects, and returns how many. tx sees the rows of every organization.
func Erase(ctx context.Context, tx pgx.Tx, organization, project string, limit int) (int64, error) {
	tag, err := tx.Exec(ctx, eraseRecords, organization, project, limit)
	return tag.RowsAffected(), err
}

// AddErased parks only the place of a record whose content must be erased.
func AddErased(ctx context.Context, tx pgx.Tx, group string, r bus.Record) error {
	return add(ctx, tx, group, bus.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time}, organizationOf(r), erasedReason)
}

// Discard empties the records and returns how many.
func Discard(ctx context.Context, tx pgx.Tx, filter Filter) (int64, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, empty+`'`+discardedReason+`'`+chosen, filter.args()...)
	return tag.RowsAffected(), err
}
