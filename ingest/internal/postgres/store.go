package postgres

import (
	"embed"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/compression"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
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
		pg.Partitions(), bus.Migrations(), inbox.Migrations(), cursorkey.Migrations(), erasure.Migrations(), outbox.Migrations(),
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
	Objects objects.Store   // with the texts of past days; nil: there are none
	Limits  Limits          // of one page
	Moves   bool            // blocks move to another store: see SearchMoved
	Clock   func() time.Time
	Metrics prometheus.Registerer
}

// A Store keeps blocks and searches them. It is safe for concurrent use.
type Store struct {
	readers *pgxpool.Pool
	replica *replica.Reader
	objects objects.Store
	limits  Limits
	moves   bool
	bundles int // that a search looks at together
	clock   func() time.Time
	metrics metrics
	codec   *compression.Codec
	memory  sync.Pool // of unpacked: blocks, which idle ones hold until the second garbage collection
}

// NewStore makes a store on a schema that is migrated.
func NewStore(config Config) *Store {
	return &Store{
		readers: config.Readers, replica: config.Replica, objects: config.Objects, limits: config.Limits, moves: config.Moves,
		bundles: bundlesAtOnce, clock: config.Clock, metrics: newMetrics(config.Metrics), codec: compression.New(maxBlockBytes),
		memory: sync.Pool{New: func() any { return new(unpacked) }},
	}
}

// rights are what serving needs of each table.
var rights = pg.Rights{
	// DELETE: by erasures and merges; UPDATE: once, to archive
	"blocks":          "SELECT, INSERT, DELETE, UPDATE (texts), UPDATE (object), UPDATE (object_at), UPDATE (object_bytes), UPDATE (bundle), UPDATE (bundled)",
	"block_days":      "SELECT, INSERT, DELETE",
	"objects":         "SELECT, INSERT, UPDATE, DELETE",
	"deleted_objects": "SELECT, INSERT, DELETE",
	"gap_charges":     "SELECT, INSERT, DELETE",
	"gap_runs":        "SELECT, INSERT, UPDATE, DELETE",
	"merge_counts":    "SELECT, INSERT, UPDATE, DELETE",
	"merged_blocks":   "SELECT, INSERT, DELETE",
	"small_blocks":    "SELECT, INSERT, UPDATE, DELETE",
	"alert_clock":     "SELECT, INSERT, UPDATE",
	"alert_history":   "SELECT, INSERT, UPDATE, DELETE",
	"ingest_rules":    "SELECT, INSERT, DELETE",
	"alerts":          "SELECT, INSERT, UPDATE, DELETE",
	"saved_searches":  "SELECT, INSERT, UPDATE, DELETE",
	"rejected_counts": "SELECT, INSERT, UPDATE, DELETE",
	"move_state":      "SELECT, UPDATE",
	"moves":           "SELECT, INSERT, UPDATE, DELETE",
	"moving_blocks":   "SELECT, INSERT, DELETE",

	"rejected_samples": "SELECT, INSERT, DELETE",
}

// metrics count the work of searches and new small blocks.
type metrics struct {
	read       prometheus.Counter
	incomplete prometheus.Counter
	small      prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) metrics {
	make := promauto.With(registerer)
	return metrics{
		read: make.NewCounter(prometheus.CounterOpts{
			Name: "weir_ingest_search_read_bytes_total", Help: "What searches have unpacked, and 128 bytes for each header of a block that they looked at.",
		}),
		incomplete: make.NewCounter(prometheus.CounterOpts{
			Name: "weir_ingest_search_incomplete_total", Help: "Pages that ended because the search had its share of time or of bytes.",
		}),
		small: make.NewCounter(prometheus.CounterOpts{
			Name: "weir_ingest_small_blocks_total", Help: "Blocks of less than 64 KiB of entries that were kept; they are to be merged.",
		}),
	}
}

func (m metrics) kept(blocks []Block) {
	for i := range blocks {
		if blocks[i].Bytes < ingest.SmallBlockBytes {
			m.small.Inc()
		}
	}
}

func (m metrics) searched(read int, incomplete bool) {
	m.read.Add(float64(read))
	if incomplete {
		m.incomplete.Inc()
	}
}

// mergeMetrics count merges and measure their backlog.
type mergeMetrics struct {
	blocks, entries, bytes prometheus.Counter
	due                    prometheus.Gauge
	late                   prometheus.Gauge
}

func newMergeMetrics(registerer prometheus.Registerer) mergeMetrics {
	make := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return make.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return make.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return mergeMetrics{
		blocks:  counter("weir_ingest_merged_blocks_total", "Small blocks that were merged into larger ones."),
		entries: counter("weir_ingest_merged_entries_total", "Entries that were written again in a larger block; an entry counts each time."),
		bytes:   counter("weir_ingest_merged_bytes_total", "What these entries have of text."),
		due:     gauge("weir_ingest_merges_due", "Days of projects whose small blocks are due to be looked at."),
		late:    gauge("weir_ingest_merges_late_seconds", "For how long the first of them has been due."),
	}
}
