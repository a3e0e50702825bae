package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

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
	rows, err := tx.Query(ctx, `SELECT organization, process, sequence FROM tallies
		JOIN unnest($1::text[], $2::text[]) AS wanted (organization, process) USING (organization, process)`, organizations, processes)
	if err != nil {
		return nil, err
	}
	var source tallySource
	var sequence int64
	_, err = pgx.ForEachRow(rows, []any{&source.organization, &source.process, &sequence}, func() error {
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
