package history

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// A Store searches both. It reads a snapshot of PostgreSQL first, which says
// what of ClickHouse counts: each entry is in exactly one of them, whatever moves meanwhile.
type Store struct {
	Blocks *postgres.Store // made with Moves
	Rows   *clickhouse.Store
	Clock  func() time.Time
	Logger *slog.Logger
}

// Search finds a page.
func (s *Store) Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error) {
	begun := s.Clock()
	newest, moved, err := s.Blocks.SearchMoved(ctx, organization, search)
	if err != nil || moved.UpTo == 0 {
		return newest, err
	}
	older, err := s.Rows.Search(ctx, string(organization), search, moved, clickhouse.Part{Read: newest.Read, Since: begun})
	if err != nil {
		return ingest.Result{}, s.failed(ctx, err)
	}
	return search.Join(newest, older), nil
}

// Count counts with the top values of each field.
func (s *Store) Count(ctx context.Context, organization pg.Organization, count ingest.Count, top int) (ingest.Counted, error) {
	begun := s.Clock()
	sum, moved, err := s.Blocks.CountMoved(ctx, organization, count)
	if err != nil {
		return ingest.Counted{}, err
	}
	if moved.UpTo > 0 {
		older, err := s.Rows.Count(ctx, string(organization), count, moved, clickhouse.Part{Read: sum.Read(), Since: begun})
		if err != nil {
			return ingest.Counted{}, s.failed(ctx, err)
		}
		sum.Merge(older)
	}
	return sum.Result(top), nil
}

// retryAfter is when a search may be tried again.
const retryAfter = 5 * time.Second

// failed answers a search without the history: no page is better than one
// that seems to be whole.
func (s *Store) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.Logger.Warn("cannot read entries that were moved", slog.String("error", err.Error()))
	return httpapi.Unavailable("Entries that were received before the last minutes can't be read at the moment. New ones are kept meanwhile.", retryAfter)
}
