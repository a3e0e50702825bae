package allinone

import (
	"context"
	"errors"
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
	server, err := postgres.Start(ctx, postgres.Config{Dir: a.dir.postgres(), Metrics: a.metrics.Registerer, Logger: a.logger})
	if err != nil {
		return "", err
	}
	a.supervise = func(ctx context.Context) error { return server.Supervise(ctx, time.Now) }
	a.atEnd(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		return server.Stop(ctx)
	})
	return server.URL(), nil
}

// watchBackends asks both backends continuously whether they answer.
func (a *App) watchBackends(databaseURL string, brokers []string, access bus.Access) error {
	dialer, err := access.Dialer()
	if err != nil {
		return err
	}
	up := NewBackendUp(a.metrics.Registerer)
	a.watches = []*watch{
		newWatch("database", func(ctx context.Context) error { return askDatabase(ctx, databaseURL) }, up, a.logger),
		newWatch("broker", func(ctx context.Context) error {
			return errors.Join(askBrokers(ctx, brokers, dialer), a.brokerRefuses())
		}, up, a.logger),
	}
	return nil
}

// broker returns the addresses of the given brokers, or of one in this
// process, with all topics created, and how the modules authenticate there.
func (a *App) broker(ctx context.Context) (brokers []string, access bus.Access, err error) {
	brokers, access = a.config.Brokers, a.config.BrokerAccess
	a.brokerRefuses = func() error { return nil } // those given show it themselves
	if len(brokers) == 0 {
		embedded, err := kafka.Start(kafka.Config{
			Dir: a.dir.kafka(), Sync: a.config.BrokerSync, Metrics: a.config.Telemetry.Registry.For("broker"), Logger: a.logger.With(slog.String("module", "broker")),
		})
		if err != nil {
			return nil, access, err
		}
		a.atEnd(embedded.Close)
		a.brokerRefuses = embedded.Err
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
