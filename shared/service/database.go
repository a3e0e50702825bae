package service

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
)

// OpenDatabase opens Pool, and migrates its schema.
func (b *Base) OpenDatabase(ctx context.Context, schema pg.Schema) (err error) {
	if b.Pool, err = pg.Open(ctx, b.config.DatabaseURL.Reveal(), schema.Name); err != nil {
		return err
	}
	b.States.Pool = b.Pool
	return b.Migrate(ctx, schema)
}

// Migrate migrates the schema of Pool, and reads its key to sign cursors.
func (b *Base) Migrate(ctx context.Context, schema pg.Schema) error {
	if err := pg.Migrate(ctx, b.Pool, schema.Name, schema.Migrations...); err != nil {
		return err
	}
	key, err := cursorkey.Read(ctx, b.Pool)
	if err == nil {
		b.CursorKey = key
		b.Cursors.Use(key)
	}
	return err
}

// OpenReads opens Reads, and Replica, each with that many connections.
func (b *Base) OpenReads(ctx context.Context, schema string, conns int) (err error) {
	if b.Reads, err = pg.OpenReaders(ctx, b.config.DatabaseURL.Reveal(), schema, conns); err != nil {
		return err
	}
	pg.Measure(b.Metrics, map[string]*pgxpool.Pool{"writes": b.Pool, "reads": b.Reads})
	b.Replica, err = replica.Open(ctx, b.config.Replica, replica.Options{
		Schema: schema, Conns: conns, Clock: b.Clock, Metrics: b.Metrics, Logger: b.Logger,
	})
	return err
}

// NewEraser returns an eraser of deletions from tables, in this order.
func (b *Base) NewEraser(tables []erasure.Table) *erasure.Eraser {
	return erasure.New(erasure.Config{
		Module: b.name, Tables: tables, Pool: b.Pool, Bus: b.Publisher, Clock: b.Clock, Metrics: b.Metrics, Logger: b.Logger,
	})
}
