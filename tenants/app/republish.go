package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Republish has the current state of all events published again: for a
// restored database, or new topics. tx must work in the module's schema.
func Republish(ctx context.Context, tx pgx.Tx) error { return relay.Rewind(ctx, tx, bus.RelayName) }

// SettleCredentials makes the tables, of an earlier hour, and the topic of
// credentials agree, as of at: keys and tokens that the topic has as revoked
// are revoked again, whose ids it returns, and those of which the tables do
// not know the state are taken back, as nobody could revoke them. Call it
// before Republish. tx must work in the module's schema, on a connection of
// pool.
func SettleCredentials(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx, brokers []string, dialer *sharedbus.Dialer, at time.Time) (
	revoked []string, forgotten int, err error) {
	logger := slog.New(slog.DiscardHandler)
	records, err := readCredentials(ctx, state.Config{Brokers: brokers, Dialer: dialer, Topic: contract.TopicCredentials}, logger)
	if err != nil {
		return nil, 0, err
	}
	if revoked, err = revokeThose(ctx, projections.NewEvents(pool), tx, records, at); err != nil {
		return nil, 0, err
	}
	tombstones, err := bus.Unknown(ctx, tx, records, at)
	if err != nil || len(tombstones) == 0 {
		return revoked, 0, err
	}
	return revoked, len(tombstones), publishAll(ctx, publisher.Config{Brokers: brokers, Dialer: dialer}, logger, tombstones)
}

// revokeThose revokes what records have as revoked, and returns the ids.
func revokeThose(ctx context.Context, events *unitofwork.Events, tx pgx.Tx, records map[string]sharedbus.Record, at time.Time) (ids []string, err error) {
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		var c contract.Credential
		_ = json.Unmarshal(records[key].Value, &c) // unreadable ones are taken back
		id, err := revokeAgain(ctx, events, tx, c, at)
		if err != nil {
			return nil, fmt.Errorf("cannot revoke %q again: %w", id, err)
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// revokeAgain returns the id of the key or token that it has revoked;
// empty: there was nothing to do.
func revokeAgain(ctx context.Context, events *unitofwork.Events, tx pgx.Tx, c contract.Credential, at time.Time) (id string, err error) {
	if c.State != contract.CredentialRevoked {
		return "", nil
	}
	revoke := tenants.Revoke{Reason: "Revoked before the database was restored to an earlier hour.", At: at.UTC().Truncate(time.Microsecond)}
	organization := cmp.Or(c.Organization, tenants.Installation)
	if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
		return c.ID, err
	}
	var stream eventstore.Stream
	var decide func([]unitofwork.Recorded) ([]tenants.Event, error)
	switch c.Kind {
	case contract.CredentialAPIKey:
		stream = unitofwork.Stream(organization, "api-key", c.ID)
		decide = func(history []unitofwork.Recorded) ([]tenants.Event, error) {
			return eventstore.Fold[tenants.APIKey](history).Revoke(revoke)
		}
	case contract.CredentialServiceToken:
		stream = unitofwork.Stream(organization, "service-token", c.ID)
		decide = func(history []unitofwork.Recorded) ([]tenants.Event, error) {
			return eventstore.Fold[tenants.ServiceToken](history).Revoke(revoke)
		}
	default:
		return "", nil
	}
	history, err := events.ReadTx(ctx, tx, stream)
	if err != nil {
		return c.ID, err
	}
	decided, err := decide(history)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && len(decided) == 0 {
		return "", nil
	}
	if err == nil {
		err = events.AppendTx(ctx, tx, stream, eventstore.VersionOf(history), unitofwork.BySystem("resume").Metadata(), decided...)
	}
	return c.ID, err
}

func publishAll(ctx context.Context, config publisher.Config, logger *slog.Logger, messages []*message.Message) error {
	to, err := publisher.New(config, logger)
	if err != nil {
		return err
	}
	_, err = to.PublishContext(ctx, contract.TopicCredentials, messages...)
	return errors.Join(err, to.Close())
}

// readCredentials returns the newest record of each current credential.
func readCredentials(ctx context.Context, from state.Config, logger *slog.Logger) (map[string]sharedbus.Record, error) {
	records := map[string]sharedbus.Record{}
	return records, state.Once(ctx, from, logger, func(record sharedbus.Record) {
		if string(record.Key) == contract.CredentialsComparedKey {
			return
		}
		if records[string(record.Key)] = record; len(record.Value) == 0 {
			delete(records, string(record.Key))
		}
	})
}

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

// run implements relay.Config.Compare.
func (c *comparison) run(ctx context.Context, published relay.Cursor) (d relay.Difference, err error) {
	at, err := c.reach(ctx, published)
	if err != nil || at == c.alike && !c.app.in.state.Lacks() {
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

// mark implements relay.Comparisons.Compared: who awaits this start of
// the process, or has seen the topic lose records, lets credentials in
// from the marker on.
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
