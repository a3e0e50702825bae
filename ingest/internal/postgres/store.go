// Package postgres is the log store: blocks of entries in Postgres.
package postgres

import (
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// Schema is where the log store lives.
const Schema = "ingest"

// maxBlockBytes bounds what a stored block may unpack to: its text, the largest entry beyond it, and its directory.
const maxBlockBytes = 64 << 20

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{bus.Migrations(), inbox.Migrations(), {Name: "ingest", FS: migrations}}
}

// defaultMaxScan takes about a second.
const defaultMaxScan = 256 << 20

// maxSearches leaves connections for the consumer that keeps blocks.
const maxSearches = 4

// A Store keeps blocks and searches them. It is safe for concurrent use.
type Store struct {
	// MaxScan is how much text one page looks through, in bytes, the headers of blocks that it passes over counted. A
	// search for something rare ends there with what it has found and a cursor, so that no request runs away. Set it
	// before the first use.
	MaxScan int

	pool      *pgxpool.Pool
	encoder   *zstd.Encoder
	decoder   *zstd.Decoder
	searching chan struct{} // holds one for each search under way
}

// NewStore makes a store on pool, whose schema is migrated.
func NewStore(pool *pgxpool.Pool) (*Store, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return nil, fmt.Errorf("cannot make the compressor of blocks: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxBlockBytes))
	if err != nil {
		return nil, fmt.Errorf("cannot make the decompressor of blocks: %w", err)
	}
	return &Store{MaxScan: defaultMaxScan, pool: pool, encoder: encoder, decoder: decoder, searching: make(chan struct{}, maxSearches)}, nil
}
