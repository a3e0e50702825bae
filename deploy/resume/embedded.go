package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/deploy/migrate"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
)

// stopTimeout is how long the database may take to stop.
const stopTimeout = 30 * time.Second

// openEmbedded starts the broker and the database of a data directory
// where no others are given, so that nobody else uses them meanwhile.
// Those of a running weir run are used as they are, to look. It makes no
// database: a directory without one was never a data directory.
func (i *installation) openEmbedded(ctx context.Context, out io.Writer) error {
	switch {
	case !isDir(i.DataDir), len(i.Brokers) > 0 && !databaseMissing(), databaseMissing() && !isDir(i.postgres()):
		return nil
	}
	release, err := allinone.Lock(i.DataDir)
	if errors.Is(err, allinone.ErrLocked) && !i.Yes {
		return nil
	}
	if err != nil {
		return err
	}
	i.alone = true
	i.ends = append(i.ends, release)
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelError}))
	if databaseMissing() {
		if err := i.startDatabase(ctx, logger); err != nil {
			return err
		}
	}
	if len(i.Brokers) == 0 {
		return i.startBroker(ctx, out, logger)
	}
	return nil
}

func (i *installation) postgres() string { return filepath.Join(i.DataDir, "postgres") }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// databaseMissing reports whether a module's database isn't given.
func databaseMissing() bool {
	return slices.ContainsFunc(endpoint.Modules, func(module string) bool {
		url, _ := endpoint.MigratingDatabaseURL(module, os.DevNull) // no weir run is at work there
		return url == ""
	})
}

// startDatabase starts the database, and brings it up to date as weir
// run would.
func (i *installation) startDatabase(ctx context.Context, logger *slog.Logger) error {
	server, err := postgres.Start(ctx, postgres.Config{Dir: i.postgres(), Logger: logger})
	if err != nil {
		return err
	}
	i.ends = append(i.ends, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return server.Stop(ctx)
	})
	return migrate.Run(ctx, migrate.Config{DataDir: i.DataDir}, io.Discard)
}

// startBroker starts the broker. A damaged log is repaired first, if
// something is to be changed.
func (i *installation) startBroker(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	dir := filepath.Join(i.DataDir, "kafka")
	if i.Yes && isDir(dir) {
		cuts, err := kafka.Repair(dir)
		if err != nil {
			return err
		}
		if err := showCuts(out, cuts); err != nil {
			return err
		}
	}
	broker, err := kafka.Start(kafka.Config{Dir: dir, Logger: logger})
	if errors.Is(err, kafka.ErrDamaged) {
		return fmt.Errorf("%w\nweir resume --yes cuts the log there, keeps what it cuts off in %s, shows what is lost, and goes on",
			err, filepath.Join(dir, "damaged"))
	}
	if err != nil {
		return err
	}
	i.ends = append(i.ends, broker.Close)
	brokers, dialer, err := i.Cluster()
	if err != nil {
		return err
	}
	return topics.EnsureWith(ctx, brokers, dialer, contract.Topics(i.LogPartitions, i.LogRetention))
}

// showCuts says what a repair has taken out of the log.
func showCuts(out io.Writer, cuts []kafka.Cut) error {
	var err error
	for _, cut := range cuts {
		upTo := "on"
		if cut.To >= 0 {
			upTo = fmt.Sprintf("up to %d", cut.To)
		}
		kept := "which the disk no longer has"
		if cut.Kept != "" {
			kept = fmt.Sprintf("%d bytes, kept in %s", cut.Bytes, cut.Kept)
		}
		_, failed := fmt.Fprintf(out, "damaged: partition %d of %s from offset %d %s: %s\n", cut.Partition, cut.Topic, cut.From, upTo, kept)
		err = errors.Join(err, failed)
	}
	return err
}
