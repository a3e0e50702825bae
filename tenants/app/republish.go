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

// ForgetUnknown publishes tombstones, as of at, of credentials that
// the database can't have published: they were created or changed
// after its backup. It returns their number. Call it before Republish.
func ForgetUnknown(ctx context.Context, tx pgx.Tx, brokers []string, dialer *sharedbus.Dialer, at time.Time) (int, error) {
	logger := slog.New(slog.DiscardHandler)
	records, err := readCredentials(ctx, state.Config{Brokers: brokers, Dialer: dialer, Topic: contract.TopicCredentials}, logger)
	if err != nil {
		return 0, err
	}
	tombstones, err := bus.Unknown(ctx, tx, records, at)
	if err != nil || len(tombstones) == 0 {
		return 0, err
	}
	return len(tombstones), publishAll(ctx, publisher.Config{Brokers: brokers, Dialer: dialer}, logger, tombstones)
}

// RevokeAgain revokes, as of at, the keys and tokens that the topic has as
// revoked and the tables, of an earlier hour, have not, and returns their
// ids. Call it before ForgetUnknown, which takes back what is not in the
// tables at all. tx must work in the module's schema as the system, on a
// connection of pool.
func RevokeAgain(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx, brokers []string, dialer *sharedbus.Dialer, at time.Time) (ids []string, err error) {
	records, err := readCredentials(ctx, state.Config{Brokers: brokers, Dialer: dialer, Topic: contract.TopicCredentials}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return nil, err
	}
	events := projections.NewEvents(pool)
	for _, key := range slices.Sorted(maps.Keys(records)) {
		var c contract.Credential
		_ = json.Unmarshal(records[key].Value, &c) // ForgetUnknown takes back unreadable ones
		id, err := revokeAgain(ctx, events, tx, c, at)
		if err != nil {
			return nil, fmt.Errorf("cannot revoke %q again: %w", id, err)
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, pg.AsSystem(ctx, tx)
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
