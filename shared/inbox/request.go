package inbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A request is one of several parts, some of which are among the records.
type request struct {
	organization string
	parts        int
	here         []int // the records that are parts of it, each the first of its part
	before       int   // parts that were seen before
	arrived      int   // parts that are judged, with those of before
}

// each calls fn with the parts in order, and deletes the kept ones. Record i completes the request.
func (r *request) each(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted, i int, fn func(contract.LogsAccepted) error) error {
	slices.SortFunc(r.here, func(a, b int) int { return cmp.Compare(records[a].Part, records[b].Part) })
	next, last := 0, 0 // of here; the part that was read last of those that were kept
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
		held = len(page) == heldAtOnce
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

// A sighting is what records are seen for the first time, part by part.
type sighting struct {
	fresh     map[part]int        // the record that is first to be a part that was not seen before
	requests  map[string]*request // of several parts, by their batch
	conflicts map[int]bool        // the records that are not what was seen of their part
}

// A sightings is what is to be remembered, column by column.
type sightings struct {
	days      []time.Time
	batches   []string
	parts     []int32
	checksums []int64
}

func (s *sightings) add(record *contract.LogsAccepted) {
	s.days, s.batches = append(s.days, record.Time.UTC()), append(s.batches, record.Batch)
	s.parts, s.checksums = append(s.parts, partOf(record).part), append(s.checksums, int64(record.Checksum())) //nolint:gosec // the bits are what counts
}

type part struct {
	batch string
	part  int32
}

func partOf(record *contract.LogsAccepted) part {
	return part{record.Batch, int32(record.Part)} //nolint:gosec // parts of a request number in the hundreds
}

func (s *sighting) first(i int, record *contract.LogsAccepted) bool {
	at, ok := s.fresh[partOf(record)]
	return ok && at == i
}

// look remembers the parts that the records are, but for those of which another request counts
// already.
func look(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted, claims *claims) (*sighting, error) {
	s := &sighting{fresh: make(map[part]int, len(records)), requests: map[string]*request{}, conflicts: map[int]bool{}}
	first := make(map[part]int, len(records))
	var seen sightings
	for i := range records {
		record := &records[i]
		key := partOf(record)
		if claims.other(record) != nil {
			continue
		}
		if before, again := first[key]; again {
			s.conflicts[i] = record.Checksum() != records[before].Checksum()
			continue
		}
		first[key] = i
		seen.add(record)
		if r := s.requests[record.Batch]; r != nil {
			r.here = append(r.here, i)
		} else if record.Parts > 1 {
			s.requests[record.Batch] = &request{organization: record.Organization, parts: record.Parts, here: []int{i}}
		}
	}
	incomplete := s.incomplete()
	if err := lock(ctx, tx, incomplete); err != nil {
		return nil, err
	}
	if err := seen.remember(ctx, tx, func(seen part) { s.fresh[seen] = first[seen] }); err != nil {
		return nil, err
	}
	if len(s.fresh) < len(first) {
		if err := seen.compare(ctx, tx, func(other part) { s.conflicts[first[other]] = true }); err != nil {
			return nil, err
		}
	}
	s.leaveFresh(records)
	if err := s.count(ctx, tx, seen.days); err != nil {
		return nil, err
	}
	s.leaveFresh(records)
	return s, nil
}

// leaveFresh takes those out of here that were seen before.
func (s *sighting) leaveFresh(records []contract.LogsAccepted) {
	for _, r := range s.requests {
		r.here = slices.DeleteFunc(r.here, func(i int) bool { return !s.first(i, &records[i]) })
	}
}

// incomplete are the batches of the requests that the records alone don't make whole, sorted.
func (s *sighting) incomplete() (batches []string) {
	for batch, r := range s.requests {
		if len(r.here) < r.parts {
			batches = append(batches, batch)
		}
	}
	slices.Sort(batches)
	return batches
}

// lock keeps others from seeing parts of the same requests: that happens only when the number of
// partitions changes.
func lock(ctx context.Context, tx pgx.Tx, batches []string) error {
	if len(batches) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir request ' || current_schema() || batch, 0))
		FROM unnest($1::text[]) WITH ORDINALITY AS t (batch, n) ORDER BY n`, batches)
	return err
}

// count counts the parts of incomplete requests seen before. A kept one was, even if the inbox has
// dropped its day.
func (s *sighting) count(ctx context.Context, tx pgx.Tx, days []time.Time) error {
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
		) AS seen GROUP BY batch, part`, days, batches, organizations)
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

// seenBefore counts a part that the inbox has or that is kept, unless it is one of the records.
func (s *sighting) seenBefore(seen part, kept bool) {
	if kept {
		delete(s.fresh, seen)
	}
	if _, fresh := s.fresh[seen]; !fresh {
		r := s.requests[seen.batch]
		r.before++
		r.arrived++
	}
}

// remember inserts the parts and calls fresh for each that was not there.
func (s *sightings) remember(ctx context.Context, tx pgx.Tx, fresh func(part)) error {
	if len(s.days) == 0 {
		return nil
	}
	if err := pg.EnsureDays(ctx, tx, "inbox", s.days...); err != nil {
		return err
	}
	return s.query(ctx, tx, `INSERT INTO inbox (day, batch, part, checksum)
		SELECT day, batch::uuid, part, checksum FROM unnest($1::date[], $2::text[], $3::int[], $4::bigint[]) AS t (day, batch, part, checksum)
		ON CONFLICT DO NOTHING RETURNING batch::text, part`, fresh)
}

// compare calls other for each part that was another record when it was remembered.
func (s *sightings) compare(ctx context.Context, tx pgx.Tx, other func(part)) error {
	return s.query(ctx, tx, `SELECT i.batch::text, i.part FROM unnest($1::date[], $2::text[], $3::int[], $4::bigint[]) AS t (day, batch, part, checksum)
		JOIN inbox i ON i.day = t.day AND i.batch = t.batch::uuid AND i.part = t.part WHERE i.checksum <> t.checksum`, other)
}

func (s *sightings) query(ctx context.Context, tx pgx.Tx, query string, each func(part)) error {
	rows, err := tx.Query(ctx, query, s.days, s.batches, s.parts, s.checksums)
	if err != nil {
		return err
	}
	var key part
	_, err = pgx.ForEachRow(rows, []any{&key.batch, &key.part}, func() error {
		each(key)
		return nil
	})
	return err
}
