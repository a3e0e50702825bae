package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants/internal/bus"
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
