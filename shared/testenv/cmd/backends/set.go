package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/containers"
	"github.com/weirlog/weir/shared/testenv/internal/docker"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A set is what was started for a run.
type set struct {
	database string // URL of a role that may create databases; "" leaves it to each package
	brokers  string // host:port; "" leaves it to each test
	backend  string // machine, kafka, or containers, which kafka becomes where there are some
	measure  bool   // what is started is measured, and not only used
	stops    []func() error
}

// stop stops everything, in reverse order.
func (s *set) stop() error {
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

func (s *set) onStop(stop func() error) { s.stops = append(s.stops, stop) }

// start starts a backend. On an error the set has what was started.
func start(ctx context.Context, backend string, measure bool) (*set, error) {
	s := &set{database: os.Getenv(testenv.EnvDatabase), brokers: os.Getenv(testenv.EnvBrokers), backend: backend, measure: measure}
	switch backend {
	case "machine":
		return s, errors.Join(s.startDatabase(ctx, s.localDatabase), s.startBroker(ctx, leaveKafkaToTests))
	case "kafka":
		if why := inContainers(ctx); why != nil {
			fmt.Printf("backends: not in containers: %v\n", why)
			return s, errors.Join(s.startDatabase(ctx, s.localDatabase), s.startBroker(ctx, s.jarsKafka))
		}
		s.backend = "containers"
		return s, errors.Join(s.startDatabase(ctx, s.containerDatabase), s.startBroker(ctx, s.containerKafka))
	}
	return s, fmt.Errorf("there is no backend %q: machine or kafka", backend)
}

// inContainers returns nil where an engine has both images or can pull them.
func inContainers(ctx context.Context) error {
	if err := containers.Provides(ctx, docker.PostgresImage()); err != nil {
		return err
	}
	return containers.Provides(ctx, apache.Image())
}

func say(what, where string) { fmt.Printf("backends: %s: %s\n", what, where) }

func (s *set) startDatabase(ctx context.Context, start func(context.Context) error) error {
	if s.database != "" {
		say("PostgreSQL", "given by "+testenv.EnvDatabase)
		return nil
	}
	if err := start(ctx); err != nil {
		return fmt.Errorf("no PostgreSQL: %w", err)
	}
	return nil
}

func (s *set) startBroker(ctx context.Context, start func(context.Context) error) error {
	if s.brokers != "" {
		say("Kafka", "given by "+testenv.EnvBrokers)
		return nil
	}
	if err := start(ctx); err != nil {
		return fmt.Errorf("no Apache Kafka: %w", err)
	}
	return nil
}

// leaveKafkaToTests starts nothing: an embedded broker starts so fast
// that each test has its own.
func leaveKafkaToTests(context.Context) error {
	say("Kafka", "embedded broker, one for each test")
	return nil
}

func (s *set) localDatabase(ctx context.Context) error {
	server, err := postgrestest.Start(ctx)
	if err != nil {
		return err
	}
	s.onStop(func() error { return server.Stop(context.WithoutCancel(ctx)) })
	s.database = server.AdminURL()
	say("PostgreSQL", "local server, binaries in "+server.Binaries())
	return nil
}

func (s *set) jarsKafka(ctx context.Context) error {
	place := testenv.Scratch
	if s.measure {
		place = onDisk
	}
	dir, err := place("weir-test-kafka-")
	if err != nil {
		return err
	}
	broker, err := apache.Start(ctx, apache.Config{Dir: dir, Brief: !s.measure})
	if err != nil {
		return err
	}
	s.onStop(broker.Stop)
	s.brokers = broker.Addr()
	say("Kafka", "Apache Kafka "+apache.Version+" from its jars, at "+broker.Addr())
	return nil
}

// onDisk is for measurements: the data of a broker in production is on a disk.
func onDisk(pattern string) (string, error) { return os.MkdirTemp("", pattern) }

func (s *set) containerDatabase(ctx context.Context) error {
	c, err := containers.Postgres(ctx, docker.PostgresImage(), testenv.InMemory())
	if err != nil {
		return err
	}
	s.onStop(c.Stop)
	s.database = c.Address
	say("PostgreSQL", "container of "+docker.PostgresImage())
	return nil
}

func (s *set) containerKafka(ctx context.Context) error {
	c, err := containers.Kafka(ctx, apache.Image())
	if err != nil {
		return err
	}
	s.onStop(c.Stop)
	s.brokers = c.Address
	say("Kafka", "container of "+apache.Image()+" at "+c.Address)
	return nil
}
