package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

// headerBytes is what passing over a block counts for, beside the filter of its words.
const headerBytes = 128

// headersAtOnce is how many headers of blocks are fetched in one go.
const headersAtOnce = 64

// Result is one page of a search. Next is where the next page starts; nil: there is none.
type Result struct {
	Found []ingest.Found
	Next  *ingest.Place
}

// Search finds a page of an organization's entries. It waits while maxSearches others are under way.
func (s *Store) Search(ctx context.Context, organization pg.Organization, search ingest.Search) (result Result, err error) {
	select {
	case s.searching <- struct{}{}:
		defer func() { <-s.searching }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	err = pg.ReadAs(ctx, s.pool, organization, func(tx pgx.Tx) error {
		scan := scan{store: s, tx: tx, organization: organization, search: &search, page: ingest.NewPage(&search), parser: ingest.NewParser(ingest.DefaultLimits())}
		if err := scan.open(ctx); err != nil {
			return fmt.Errorf("cannot search the log store: %w", err)
		}
		result, err = scan.run(ctx)
		return err
	})
	return result, err
}

// A scan goes through the blocks of a search in the order in which they begin.
type scan struct {
	store        *Store
	tx           pgx.Tx
	organization pg.Organization
	search       *ingest.Search
	page         *ingest.Page
	parser       *ingest.Parser
	scanned      int // bytes of text and of headers
}

// candidate is a block that may hold what is wanted.
type candidate struct {
	ingest.Header
	project    string
	receivedAt time.Time
	block      string
}

// open declares a cursor over the headers. The span is compared in seconds only; MayFind is exact.
func (s *scan) open(ctx context.Context) error {
	order := "max_seconds DESC, max_nanos DESC"
	if s.search.OldestFirst {
		order = "min_seconds, min_nanos"
	}
	from, to := s.seconds()
	_, err := s.tx.Exec(ctx, `DECLARE headers NO SCROLL CURSOR FOR
		SELECT block::text, project, received_at, min_seconds, min_nanos, max_seconds, max_nanos, levels, text_bytes,
			CASE WHEN $6 THEN words ELSE ''::bytea END
		FROM blocks WHERE organization = $1 AND ($2 = '' OR project = $2)
			AND ($3::bigint IS NULL OR max_seconds >= $3) AND ($4::bigint IS NULL OR min_seconds <= $4)
			AND ($5 = 0 OR levels & $5 <> 0)
		ORDER BY `+order, pgx.QueryExecModeSimpleProtocol, s.organization, s.search.Project, from, to, int16(s.search.Levels), len(s.search.Words) > 0)
	return err
}

// seconds are the bounds of event times, nil where there is none.
func (s *scan) seconds() (from, to *int64) {
	if s.search.From != nil {
		from = &s.search.From.Seconds
	}
	if s.search.To != nil {
		to = &s.search.To.Seconds
	}
	after := s.search.After
	switch {
	case after == nil:
	case s.search.OldestFirst:
		from = later(from, after.Time.Seconds)
	default:
		to = earlier(to, after.Time.Seconds)
	}
	return from, to
}

func later(bound *int64, seconds int64) *int64 {
	if bound == nil || *bound < seconds {
		return &seconds
	}
	return bound
}

func earlier(bound *int64, seconds int64) *int64 {
	if bound == nil || *bound > seconds {
		return &seconds
	}
	return bound
}

func (s *scan) run(ctx context.Context) (Result, error) {
	for {
		candidates, err := s.fetch(ctx)
		if err != nil {
			return Result{}, fmt.Errorf("cannot read the log store's headers: %w", err)
		}
		for _, c := range candidates {
			first := s.search.First(&c.Header)
			if s.page.Complete(first) {
				return s.complete(), nil
			}
			if s.scanned >= s.store.MaxScan && s.search.MayStop(first) {
				return s.stopped(first), nil
			}
			s.scanned += headerBytes + len(c.Words)
			if err := s.look(ctx, c); err != nil {
				return Result{}, fmt.Errorf("cannot search block %s: %w", c.block, err)
			}
		}
		if len(candidates) == 0 {
			return s.complete(), nil
		}
	}
}

// fetch reads the next headers; none at the end.
func (s *scan) fetch(ctx context.Context) ([]candidate, error) {
	rows, err := s.tx.Query(ctx, fmt.Sprintf(`FETCH %d FROM headers`, headersAtOnce))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c candidate, err error) {
		var minNanos, maxNanos int32
		var levels int16
		err = row.Scan(&c.block, &c.project, &c.receivedAt, &c.Min.Seconds, &minNanos, &c.Max.Seconds, &maxNanos, &levels, &c.Bytes, (*[]byte)(&c.Words))
		c.Min.Nanos, c.Max.Nanos, c.Levels = uint32(minNanos), uint32(maxNanos), ingest.LevelSet(levels) //nolint:gosec // as stored
		return c, err
	})
}

// look offers a block's entries to the page, if its header lets it.
func (s *scan) look(ctx context.Context, c candidate) error {
	if !s.search.MayFind(&c.Header) {
		return nil
	}
	var data []byte
	if err := s.tx.QueryRow(ctx, `SELECT data FROM blocks
		WHERE organization = $1 AND project = $2 AND received_at = $3 AND block = $4::uuid`,
		s.organization, c.project, c.receivedAt, c.block).Scan(&data); err != nil {
		return err
	}
	entries, err := s.store.unpack(data)
	if err != nil {
		return err
	}
	s.scanned += c.Bytes
	return s.page.Offer(entries, c.project, s.message)
}

func (s *scan) message(entry []byte) ([]byte, error) {
	read, err := s.parser.ReadEntry(entry)
	return read.Message, err
}

func (s *scan) complete() Result {
	found, next := s.page.Result()
	return Result{Found: found, Next: next}
}

// stopped is a page that ends before the blocks that begin at first, full or not.
func (s *scan) stopped(first ingest.Instant) Result {
	found, next := s.page.ResultUpTo(first)
	return Result{Found: found, Next: next}
}
