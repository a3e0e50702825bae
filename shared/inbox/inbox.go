package inbox

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the tables of an inbox, for every module
// that consumes weir.logs.v1.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "inbox", FS: migrations, Rights: pg.Rights{
		"inbox":             "SELECT, INSERT", // days are dropped whole
		"inbox_idempotency": "SELECT, INSERT, UPDATE, DELETE",
		"inbox_held":        "SELECT, INSERT, DELETE",
	}}
}

// IdempotencyWindow is how long an Idempotency-Key is bound to its first request.
const IdempotencyWindow = 24 * time.Hour

// A Verdict is how a record counts. Only a Fresh one may have an
// effect: that of its whole request.
type Verdict int

// The verdicts.
const (
	Fresh       Verdict = iota + 1 // it completes its request, for the first time
	Partial                        // it is kept until the rest of its request is there
	Duplicate                      // the same part of the same batch was seen before
	Replayed                       // another batch with the same idempotency key and body counts
	Reused                         // another batch with the same idempotency key and another body counts
	Conflicting                    // another record of the same part of the same batch was seen before: a producer is at fault
)

// Results are an inbox's verdicts on records.
type Results struct {
	Verdicts []Verdict // in the records' order

	Checksums []uint64 // in the records' order: see contract.LogsAccepted.Checksum

	records []contract.LogsAccepted
	whole   map[int]*request // of several parts, by the record that completes it
}

// Filter gives each record its verdict and stores in tx, which acts as
// the system, what it has seen. Call it at the start of the transaction
// of the effect. The records of one idempotency key must be in the
// order of their partition. It keeps the Lines of Partial records: a
// consumer without need for them leaves them nil.
func Filter(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) (*Results, error) {
	j := &Results{Verdicts: make([]Verdict, len(records)), Checksums: make([]uint64, len(records)), records: records, whole: map[int]*request{}}
	for i := range records {
		j.Checksums[i] = records[i].Checksum()
	}
	if len(records) == 0 {
		return j, nil
	}
	claims, err := loadClaims(ctx, tx, records)
	if err != nil {
		return nil, fmt.Errorf("cannot judge idempotency: %w", err)
	}
	seen, err := look(ctx, tx, records, j.Checksums, claims)
	if err != nil {
		return nil, fmt.Errorf("cannot judge parts: %w", err)
	}
	for i := range records {
		j.Verdicts[i] = j.judge(i, claims, seen)
	}
	if err := claims.save(ctx, tx); err != nil {
		return nil, fmt.Errorf("cannot claim idempotency keys: %w", err)
	}
	if err := j.keep(ctx, tx); err != nil {
		return nil, fmt.Errorf("cannot keep parts: %w", err)
	}
	return j, nil
}

// judge gives record i its verdict, after all records before it.
func (j *Results) judge(i int, claims *claims, seen *seenParts) Verdict {
	record := &j.records[i]
	if claim := claims.other(record); claim != nil {
		return claim.judge(record)
	}
	if !seen.fresh[i] {
		if seen.conflicts[i] {
			return Conflicting
		}
		return Duplicate
	}
	if r := seen.requests[record.Batch]; r != nil {
		if r.arrived++; r.arrived < record.Parts {
			return Partial
		}
		j.whole[i] = r
	}
	claims.claim(record)
	return Fresh
}

// keep stores Partial records, unless a later one completes the request
// or it can have no effect.
func (j *Results) keep(ctx context.Context, tx pgx.Tx) error {
	over := map[string]bool{}
	for i := range j.whole {
		over[j.records[i].Batch] = true
	}
	var superseded []*contract.LogsAccepted
	for i, verdict := range j.Verdicts {
		if record := &j.records[i]; record.Parts > 1 && (verdict == Replayed || verdict == Reused) && !over[record.Batch] {
			over[record.Batch] = true
			superseded = append(superseded, record)
		}
	}
	var kept []contract.LogsAccepted
	for i, verdict := range j.Verdicts {
		if verdict == Partial && !over[j.records[i].Batch] {
			kept = append(kept, j.records[i])
		}
	}
	if err := forget(ctx, tx, superseded...); err != nil {
		return err
	}
	return hold(ctx, tx, kept)
}

// Drop deletes the kept parts of some projects. Call it after Whole.
func (j *Results) Drop(ctx context.Context, tx pgx.Tx, of func(organization, project string) bool) error {
	var gone []*contract.LogsAccepted
	for i, verdict := range j.Verdicts {
		if record := &j.records[i]; verdict == Partial && of(record.Organization, record.Project) {
			gone = append(gone, record)
		}
	}
	return forget(ctx, tx, gone...)
}

// Whole calls each with all parts, in order, of the request that the
// Fresh record i completes. Each may use tx.
func (j *Results) Whole(ctx context.Context, tx pgx.Tx, i int, each func(contract.LogsAccepted) error) error {
	if r := j.whole[i]; r != nil {
		return r.each(ctx, tx, j.records, i, each)
	}
	return each(j.records[i])
}

// Received is what an inbox has judged of some records of weir.logs.v1.
type Received struct {
	Logs    []contract.LogsAccepted // the wanted ones
	sources []bus.Record
	results *Results
}

// Receive parses records and filters them, without those of deleted
// organizations and projects, in tx, which acts as the system.
// want chooses records, and may drop their Lines; nil: all. An unreadable
// record is permanent: the bus parks it.
func Receive(ctx context.Context, tx pgx.Tx, records []bus.Record, want func(*contract.LogsAccepted) bool) (*Received, error) {
	all := &Received{Logs: make([]contract.LogsAccepted, 0, len(records)), sources: make([]bus.Record, 0, len(records))}
	for _, record := range records {
		logs, err := contract.ParseLogsAccepted(record.Header, record.Value)
		if err != nil {
			return nil, bus.PermanentRecord(record, err)
		}
		if want == nil || want(&logs) {
			all.Logs, all.sources = append(all.Logs, logs), append(all.sources, record)
		}
	}
	deleted, err := erasure.FindDeletedIn(ctx, tx, all.Logs)
	if err != nil {
		return nil, err
	}
	all.drop(deleted)
	all.results, err = Filter(ctx, tx, all.Logs)
	return all, err
}

func (r *Received) drop(deleted erasure.Set) {
	if len(deleted) == 0 {
		return
	}
	logs, sources := r.Logs, r.sources
	r.Logs, r.sources = r.Logs[:0], r.sources[:0]
	for i := range logs {
		if !deleted.Has(logs[i].Organization, logs[i].Project) {
			r.Logs, r.sources = append(r.Logs, logs[i]), append(r.sources, sources[i])
		}
	}
}

// Each calls fn with the parts, in order, of each request that a record
// completes, and with that record. fn may use tx.
func (r *Received) Each(ctx context.Context, tx pgx.Tx, fn func(bus.Record, contract.LogsAccepted) error) error {
	for i, source := range r.sources {
		if r.results.Verdicts[i] != Fresh {
			continue
		}
		if err := r.results.Whole(ctx, tx, i, func(part contract.LogsAccepted) error { return fn(source, part) }); err != nil {
			return err
		}
	}
	return nil
}

// Retention is how long an inbox recognizes a part: longer than
// any producer retries.
const Retention = 7 * 24 * time.Hour

// maxAhead limits how far the clock may be ahead of the newest part: a
// wrong clock must not make an inbox drop recent parts. Without newer
// parts nothing needs to go.
const maxAhead = 24 * time.Hour

// Tables returns the tables of an inbox, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{days{clock}, keys{clock}, held{clock}}
}

// days are the partitions of inbox, each dropped whole.
type days struct{ clock func() time.Time }

func (days) Name() string { return "inbox" }

func (days) Keeps() string { return "7 days, each a partition" }

func (d days) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	newest, err := pg.NewestDay(ctx, tx, "inbox")
	if err != nil || newest.IsZero() {
		return 0, false, err
	}
	before, err := cutoff(ctx, tx, calendar.Earlier(d.clock(), newest.Add(maxAhead)))
	if err != nil {
		return 0, false, err
	}
	dropped, err := pg.DropDaysBefore(ctx, tx, "inbox", before)
	return int64(len(dropped)), false, err
}

func (days) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return one(ctx, tx, `SELECT min(day)::timestamp AT TIME ZONE 'UTC' FROM inbox`)
}

// keys are the idempotency keys. One stays as long as the day of its
// request in inbox: parts it excluded would count as new. So does one
// with a parked record, which may be replayed.
type keys struct{ clock func() time.Time }

func (keys) Name() string { return "inbox_idempotency" }

func (keys) Keeps() string { return "7 days, or as long as a record of the key is parked" }

func (k keys) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	newest, err := one(ctx, tx, `SELECT max(accepted_at) FROM inbox_idempotency`)
	if err != nil || newest.IsZero() {
		return 0, false, err
	}
	before, err := cutoff(ctx, tx, calendar.Earlier(k.clock(), newest.Add(maxAhead)))
	if err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM inbox_idempotency WHERE accepted_at < $1 AND NOT EXISTS (
		SELECT FROM bus_parked WHERE header_values[array_position(header_names, $2)] = convert_to(idempotency, 'UTF8'))`, before, contract.HeaderIdempotency)
	return tag.RowsAffected(), false, err
}

func (keys) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return one(ctx, tx, `SELECT min(accepted_at) FROM inbox_idempotency`)
}

// cutoff returns the start of the oldest day to keep: Retention before
// the record that the slowest lane has reached, as its records are
// still to be judged.
func cutoff(ctx context.Context, tx pgx.Tx, now time.Time) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	slowest, err := one(ctx, tx, `SELECT min(since) FROM bus_deferred WHERE halted IS NULL`)
	if err == nil && !slowest.IsZero() {
		now = calendar.Earlier(now, slowest)
	}
	return now.Add(-Retention).UTC().Truncate(24 * time.Hour), err
}

// one returns the only time in a query's result; zero for null.
func one(ctx context.Context, tx pgx.Tx, query string) (at time.Time, err error) {
	var found *time.Time
	if err := tx.QueryRow(ctx, query).Scan(&found); err != nil || found == nil {
		return time.Time{}, err
	}
	return *found, nil
}

// held are the parts of incomplete requests. One kept today stays,
// however late the consumer is: the others may come at any time. They
// may also be parked, and be replayed unless they are emptied. Parked
// records of other requests keep nothing.
type held struct{ clock func() time.Time }

func (held) Name() string { return "inbox_held" }

func (held) Keeps() string {
	return "until the request is whole, else 7 days, or as long as a part of it is parked"
}

func (h held) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	before, err := cutoff(ctx, tx, h.clock())
	if err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM inbox_held h WHERE accepted_at < $1 AND held_at < $3
		AND NOT EXISTS (SELECT FROM bus_parked p WHERE p.organization = h.organization
			AND p.header_values[array_position(p.header_names, $2)] = convert_to(h.batch::text, 'UTF8'))`, before, contract.HeaderBatch, h.clock().Add(-24*time.Hour))
	return tag.RowsAffected(), false, err
}

func (held) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	return one(ctx, tx, `SELECT min(accepted_at) FROM inbox_held`)
}
