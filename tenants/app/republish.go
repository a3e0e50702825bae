package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// Republish has the current state of all events published again: for a
// restored database, or new topics. tx must work in the module's schema.
func Republish(ctx context.Context, tx pgx.Tx) error { return relay.Rewind(ctx, tx, bus.RelayName) }

// readTimeout bounds reading all credentials.
const readTimeout = 5 * time.Minute

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

var errRead = errors.New("it is read")

// readCredentials returns the newest record of each current credential.
func readCredentials(ctx context.Context, from state.Config, logger *slog.Logger) (map[string]sharedbus.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	records := map[string]sharedbus.Record{}
	from.Apply = func(record sharedbus.Record) error {
		if records[string(record.Key)] = record; len(record.Value) == 0 {
			delete(records, string(record.Key))
		}
		return nil
	}
	reader := state.NewReader(from, logger)
	err := lifecycle.Run(ctx, reader.Run, func(ctx context.Context) error {
		select {
		case <-reader.Ready():
			return errRead
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if !errors.Is(err, errRead) {
		return nil, fmt.Errorf("cannot read %s within %s: %w", from.Topic, readTimeout, errors.Join(err, reader.Complete()))
	}
	return records, nil
}
