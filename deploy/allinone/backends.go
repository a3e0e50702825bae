package allinone

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
)

// Limits of the backends.
const (
	topicsTimeout   = 15 * time.Second
	databaseTimeout = 30 * time.Second // to stop
)

// database returns the URL of the given PostgreSQL, or of one that it
// starts in the data directory.
func (a *App) database(ctx context.Context) (url string, err error) {
	if given := a.config.DatabaseURL.Reveal(); given != "" {
		return given, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: a.dir.postgres(), Logger: a.logger})
	if err != nil {
		return "", err
	}
	a.atEnd(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		return server.Stop(ctx)
	})
	return server.URL(), nil
}

// broker returns the addresses of the given brokers, or of one in this
// process, with all topics created, and how the modules authenticate there.
func (a *App) broker(ctx context.Context) (brokers []string, access bus.Access, err error) {
	brokers, access = a.config.Brokers, a.config.BrokerAccess
	if len(brokers) == 0 {
		embedded, err := kafka.Start(kafka.Config{
			Dir: a.dir.kafka(), Metrics: a.config.Telemetry.Registry.For("broker"), Logger: a.logger.With(slog.String("module", "broker")),
		})
		if err != nil {
			return nil, access, err
		}
		a.atEnd(embedded.Close)
		brokers = []string{embedded.Addr()}
		access = bus.Access{User: kafka.User, PasswordFile: kafka.PasswordFile(a.dir.kafka()), Mechanism: kafka.Mechanism}
	}
	dialer, err := access.Dialer()
	if err != nil {
		return nil, access, err
	}
	ctx, cancel := context.WithTimeout(ctx, topicsTimeout)
	defer cancel()
	if err := topics.EnsureWith(ctx, brokers, dialer, contract.Topics(a.config.LogPartitions, a.config.LogRetention)); err != nil {
		return nil, access, fmt.Errorf("cannot reach Kafka at %v: %w", brokers, err)
	}
	return brokers, access, nil
}
