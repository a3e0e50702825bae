package inbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A request has several parts, some of which are among the records.
type request struct {
	organization string
	parts        int
	here         []int // the records that are its parts, the first of each
	before       int   // parts seen before
	arrived      int   // parts judged, including those of before
}

// each calls fn with the parts in order, and deletes the kept ones.
// Record i completes the request.
func (r *request) each(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted, i int, fn func(contract.LogsAccepted) error) error {
	slices.SortFunc(r.here, func(a, b int) int { return cmp.Compare(records[a].Part, records[b].Part) })
	next, last := 0, 0 // an index of here; the number of the last kept part
	for held := r.before > 0; held; {
		page, err := loadHeld(ctx, tx, &records[i], last)
		if err != nil {
			return err
		}
		for _, part := range page {
			for ; next < len(r.here) && records[r.here[next]].Part < part.Part; next++ {
				if err := fn(records[r.here[next]]); err != nil {
					return err
				}
			}
			if err := fn(part); err != nil {
				return err
			}
			last = part.Part
		}
		held = len(page) == heldPage
	}
	for ; next < len(r.here); next++ {
		if err := fn(records[r.here[next]]); err != nil {
			return err
		}
	}
	if r.before == 0 {
		return nil
	}
	return forget(ctx, tx, &records[i])
}

// Seen parts are the parts that records are, and which of them are new.
type seenParts struct {
	first     map[part]int        // the first record of each part; bounded by the records
	fresh     []bool              // by record: whether it is the first of a new part
	requests  map[string]*request // of several parts, by their batch; bounded by the records
	conflicts map[int]bool        // the records that differ from the one seen of their part
}

// A seenParts is the parts to remember.
type partsToKeep []seenPart

// A seenPart is a part as the inbox stores it.
type seenPart struct {
	part
	record   int // its record
	day      time.Time
	checksum int64
}

type part struct {
	batch string
	part  int32
}

func partOf(record *contract.LogsAccepted) part {
	return part{record.Batch, int32(record.Part)} //nolint:gosec // parts of a request number in the hundreds
}

// look stores the parts that the records are, except those whose key
// another request has.
func look(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted, checksums []uint64, claims *claims) (*seenParts, error) {
	s := &seenParts{
		first: make(map[part]int, len(records)), fresh: make([]bool, len(records)), requests: map[string]*request{}, conflicts: map[int]bool{},
	}
	seen := make(partsToKeep, 0, len(records))
	for i := range records {
		if claims.other(&records[i]) == nil && s.add(records, checksums, i) {
			day := records[i].Time.UTC().Truncate(24 * time.Hour)
			seen = append(seen, seenPart{partOf(&records[i]), i, day, int64(checksums[i])}) //nolint:gosec // the bits are what counts
		}
	}
	if err := lock(ctx, tx, s.incomplete()); err != nil {
		return nil, err
	}
	if err := s.remember(ctx, tx, seen); err != nil {
		return nil, err
	}
	s.leaveFresh()
	if err := s.count(ctx, tx, seen.days()); err != nil {
		return nil, err
	}
	s.leaveFresh()
	return s, nil
}

// add reports whether record i is the first of the records to be its part.
func (s *seenParts) add(records []contract.LogsAccepted, checksums []uint64, i int) bool {
	record := &records[i]
	key := partOf(record)
	if before, again := s.first[key]; again {
		s.conflicts[i] = checksums[i] != checksums[before]
		return false
	}
	s.first[key] = i
	if r := s.requests[record.Batch]; r != nil {
		r.here = append(r.here, i)
	} else if record.Parts > 1 {
		s.requests[record.Batch] = &request{organization: record.Organization, parts: record.Parts, here: []int{i}}
	}
	return true
}

// leaveFresh removes from here the parts seen before.
func (s *seenParts) leaveFresh() {
	for _, r := range s.requests {
		r.here = slices.DeleteFunc(r.here, func(i int) bool { return !s.fresh[i] })
	}
}

// incomplete returns, sorted, the batches of requests that the records
// alone don't complete.
func (s *seenParts) incomplete() (batches []string) {
	for batch, r := range s.requests {
		if len(r.here) < r.parts {
			batches = append(batches, batch)
		}
	}
	slices.Sort(batches)
	return batches
}

// lock blocks others that see parts of the same requests, which happens
// only when the number of partitions changes.
func lock(ctx context.Context, tx pgx.Tx, batches []string) error {
	if len(batches) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir request ' || current_schema() || batch, 0))
		FROM unnest($1::text[]) WITH ORDINALITY AS t (batch, n) ORDER BY n`, batches)
	return err
}

// count counts the parts of incomplete requests seen before. A kept one
// counts even if the inbox has dropped its day.
func (s *seenParts) count(ctx context.Context, tx pgx.Tx, days []time.Time) error {
	batches := s.incomplete()
	if len(batches) == 0 {
		return nil
	}
	organizations := make([]string, len(batches))
	for n, batch := range batches {
		organizations[n] = s.requests[batch].organization
	}
	rows, err := tx.Query(ctx, `SELECT batch::text, part, bool_or(kept) FROM (
			SELECT batch, part, false AS kept FROM inbox WHERE day = ANY($1::date[]) AND batch = ANY($2::text[]::uuid[])
			UNION ALL
			SELECT batch, part, true FROM inbox_held WHERE (organization, batch) IN (SELECT * FROM unnest($3::text[], $2::text[]::uuid[]))
		) AS seen GROUP BY batch, part`, pgx.QueryExecModeCacheDescribe, days, batches, organizations) // planned for the days: it locks no others
	if err != nil {
		return err
	}
	var seen part
	var kept bool
	_, err = pgx.ForEachRow(rows, []any{&seen.batch, &seen.part, &kept}, func() error {
		s.seenBefore(seen, kept)
		return nil
	})
	return err
}

// seenBefore counts a part that the inbox has or keeps, unless it is
// one of the records.
func (s *seenParts) seenBefore(seen part, kept bool) {
	at, here := s.first[seen]
	if here && kept {
		s.fresh[at] = false
	}
	if !here || !s.fresh[at] {
		r := s.requests[seen.batch]
		r.before++
		r.arrived++
	}
}

// days returns the days of the parts, once each, sorted.
func (s partsToKeep) days() (days []time.Time) {
	for i := range s {
		if i == 0 || !s[i].day.Equal(s[i-1].day) {
			days = append(days, s[i].day)
		}
	}
	slices.SortFunc(days, time.Time.Compare)
	return slices.CompactFunc(days, time.Time.Equal)
}

// of returns the parts of a day.
func (s partsToKeep) of(day time.Time) (of partsToKeep) {
	for _, seen := range s {
		if seen.day.Equal(day) {
			of = append(of, seen)
		}
	}
	return of
}

// remember looks up which parts the inbox has, and adds the others.
func (s *seenParts) remember(ctx context.Context, tx pgx.Tx, seen partsToKeep) error {
	days := seen.days()
	if err := pg.EnsureDays(ctx, tx, "inbox", days...); err != nil {
		return err
	}
	for _, day := range days {
		of := seen
		if len(days) > 1 {
			of = seen.of(day)
		}
		known, err := of.take(ctx, tx, day)
		if err != nil {
			return err
		}
		for _, part := range of {
			checksum, again := known[part.part]
			if !again {
				s.fresh[part.record] = true
			} else if checksum != part.checksum {
				s.conflicts[part.record] = true
			}
		}
	}
	return nil
}

// take adds a day's new parts to the inbox and returns the others, with
// their checksums. Almost always all are new, and the table's
// key proves it: the inbox is queried only after the key refuses the
// copy. A concurrent transaction with the same parts waits.
func (s partsToKeep) take(ctx context.Context, tx pgx.Tx, day time.Time) (known map[part]int64, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return s.save(ctx, tx, day) })
	if !pg.IsUnique(err) {
		return nil, err
	}
	if known, err = s.known(ctx, tx, day); err != nil {
		return nil, err
	}
	var fresh partsToKeep
	for _, part := range s {
		if _, again := known[part.part]; !again {
			fresh = append(fresh, part)
		}
	}
	return known, fresh.save(ctx, tx, day)
}

// known returns a day's parts that the inbox has, with their checksums.
func (s partsToKeep) known(ctx context.Context, tx pgx.Tx, day time.Time) (map[part]int64, error) {
	batches := make([]string, len(s))
	for i, seen := range s {
		batches[i] = seen.batch
	}
	// Row by row and planned each time, so that it uses the index:
	// PostgreSQL expects a scan of the whole day to be cheaper, and
	// keeps the plan from when the day was empty.
	rows, err := tx.Query(ctx, `SELECT i.batch::text, i.part, i.checksum FROM unnest($2::text[]::uuid[]) AS asked (batch),
		LATERAL (SELECT batch, part, checksum FROM inbox WHERE day = $1 AND batch = asked.batch OFFSET 0) AS i`,
		pgx.QueryExecModeCacheDescribe, day, batches)
	if err != nil {
		return nil, err
	}
	known := map[part]int64{}
	var key part
	var checksum int64
	_, err = pgx.ForEachRow(rows, []any{&key.batch, &key.part, &checksum}, func() error {
		known[key] = checksum
		return nil
	})
	return known, err
}

var inboxColumns = []string{"day", "batch", "part", "checksum"}

// save adds parts of a day, in the order of the index.
func (s partsToKeep) save(ctx context.Context, tx pgx.Tx, day time.Time) error {
	if len(s) == 0 {
		return nil
	}
	slices.SortFunc(s, func(a, b seenPart) int {
		return cmp.Or(cmp.Compare(a.batch, b.batch), cmp.Compare(a.part.part, b.part.part))
	})
	ids := make([]uuid.UUID, len(s))
	for i, seen := range s {
		var err error
		if ids[i], err = uuid.Parse(seen.batch); err != nil {
			return fmt.Errorf("cannot remember the batch %q: %w", seen.batch, err)
		}
	}
	return pg.Copy(ctx, tx, pg.DayPartition("inbox", day), inboxColumns, len(s), func(i int, row *pg.CopyRow) {
		row.Date(day)
		row.UUID(ids[i])
		row.Int32(s[i].part.part)
		row.Int64(s[i].checksum)
	})
}
