package inbox

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
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
