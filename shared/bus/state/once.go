package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/lifecycle"
)

// onceTimeout bounds Once.
const onceTimeout = 5 * time.Minute

var errRead = errors.New("it is read")

// Once reads a topic up to its present end, and passes each record on,
// in order within its partition. cfg.Apply is not used.
func Once(ctx context.Context, cfg Config, logger *slog.Logger, each func(bus.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	cfg.SnapshotDir, cfg.Pool, cfg.Metrics = "", nil, nil
	cfg.Apply = func(record bus.Record) error {
		each(record)
		return nil
	}
	reader := NewReader(cfg, logger)
	err := lifecycle.Run(ctx, reader.Run, func(ctx context.Context) error {
		select {
		case <-reader.Ready():
			return errRead
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if !errors.Is(err, errRead) {
		return fmt.Errorf("cannot read %s within %s: %w", cfg.Topic, onceTimeout, errors.Join(err, reader.Complete()))
	}
	return nil
}
