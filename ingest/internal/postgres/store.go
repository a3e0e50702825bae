package postgres

import (
	"embed"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/compression"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
)

// Schema is that of the log store.
const Schema = "ingest"

// maxBlockBytes bounds what a stored block may unpack to: its text, the
// largest entry beyond it, and its directory.
const maxBlockBytes = 64 << 20

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{
		pg.Partitions(), bus.Migrations(), inbox.Migrations(), cursorkey.Migrations(), erasure.Migrations(),
		{Name: "ingest", FS: migrations, Rights: rights},
	}
}

// Limits bound one page of a search. At a limit it ends with
// what it has found and a cursor.
type Limits struct {
	Bytes int           // unpacked, headers of blocks counted as well
	Time  time.Duration // at work
}

// DefaultLimits are those without settings.
func DefaultLimits() Limits { return Limits{Bytes: 256 << 20, Time: 2 * time.Second} }

// Config is what a Store works with.
type Config struct {
	Readers *pgxpool.Pool   // for searches; those who keep blocks bring their own transaction
	Replica *replica.Reader // for the same, nil: there is none
	Limits  Limits          // of one page
	Clock   func() time.Time
	Metrics prometheus.Registerer
}

// A Store keeps blocks and searches them. It is safe for concurrent use.
type Store struct {
	readers *pgxpool.Pool
	replica *replica.Reader
	limits  Limits
	clock   func() time.Time
	metrics metrics
	codec   *compression.Codec
}

// NewStore makes a store on a schema that is migrated.
func NewStore(config Config) *Store {
	return &Store{
		readers: config.Readers, replica: config.Replica, limits: config.Limits, clock: config.Clock, metrics: newMetrics(config.Metrics),
		codec: compression.New(maxBlockBytes),
	}
}
