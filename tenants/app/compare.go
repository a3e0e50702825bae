package app

import (
	"context"

	"github.com/jackc/pgx/v5"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// A comparison compares the compacted topics with the tables. It reads
// them whole, unless nothing has changed since they were alike.
type comparison struct {
	app         *App
	publication *bus.Publication
	alike       reach
	marked      bool // what was compared last
}

// A reach is how far events were published, and where the topics began and ended.
type reach struct {
	published          relay.Cursor
	credentials, facts logEnd
}

type logEnd struct {
	topic      [16]byte
	start, end int64 // the start moves where records are deleted
}

func (a *App) comparison(publication *bus.Publication) *comparison {
	return &comparison{app: a, publication: publication}
}

// run implements relay.Config.Compare.
func (c *comparison) run(ctx context.Context, published relay.Cursor) (d relay.Difference, err error) {
	at, err := c.reach(ctx, published)
	if err != nil || at == c.alike && !c.app.state.Lacks() {
		return d, err
	}
	c.marked = false
	topics, err := c.read(ctx)
	if err != nil {
		return d, err
	}
	err = pg.Snapshot(ctx, c.app.base.Pool, func(tx pgx.Tx) error {
		d, err = c.publication.Compare(ctx, tx, topics, c.read, published, c.app.base.Clock())
		return err
	})
	if err == nil && d.Lost == "" {
		c.alike = at
	}
	return d, err
}

func (c *comparison) reach(ctx context.Context, published relay.Cursor) (at reach, err error) {
	at.published = published
	if at.credentials, err = c.end(ctx, contract.TopicCredentials); err != nil {
		return at, err
	}
	at.facts, err = c.end(ctx, contract.TopicTenants)
	return at, err
}

func (c *comparison) end(ctx context.Context, topic string) (logEnd, error) {
	reader := logrange.Reader{Brokers: c.app.config.Brokers, Dialer: c.app.base.Dialer, Topic: topic}
	id, bounds, err := reader.Bounds(ctx)
	return logEnd{id, bounds[0].Start, bounds[0].End}, err // they have one partition
}

// read reads both topics, of the facts only which there are.
func (c *comparison) read(ctx context.Context) (topics bus.Topics, err error) {
	from := state.Config{Brokers: c.app.config.Brokers, Dialer: c.app.base.Dialer, Topic: contract.TopicCredentials}
	if topics.Credentials, err = readCredentials(ctx, from, c.app.base.Logger); err != nil {
		return topics, err
	}
	topics.Facts = map[string]bool{}
	from.Topic = contract.TopicTenants
	err = state.Once(ctx, from, c.app.base.Logger, func(record sharedbus.Record) {
		if topics.Facts[string(record.Key)] = true; len(record.Value) == 0 {
			delete(topics.Facts, string(record.Key))
		}
	})
	return topics, err
}

// mark implements relay.Config.Compared: who awaits this start of the
// process, or has seen the topic lose records, lets credentials in from
// the marker on.
func (c *comparison) mark(ctx context.Context) error {
	if c.marked {
		return nil
	}
	marker, err := bus.Compared(c.app.config.Start, c.app.base.Clock())
	if err != nil {
		return err
	}
	at, err := c.app.base.Publisher.PublishContext(ctx, contract.TopicCredentials, marker)
	if err != nil {
		return err
	}
	c.marked = true
	if at[0].Offset == c.alike.credentials.end {
		c.alike.credentials.end++ // the marker alone is no reason to compare
	}
	return nil
}
