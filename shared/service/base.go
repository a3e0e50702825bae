package service

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/tracing/otlp"
)

// A Base holds what every service uses.
type Base struct {
	Clock   func() time.Time
	Logger  *slog.Logger
	Dialer  *bus.Dialer      // for the brokers
	Proxies []netip.Prefix   // whose X-Forwarded headers are trusted
	Cursors *httpapi.Cursors // of lists
	States  state.Config     // how topics are followed in memory; the caller sets topic and Apply
	Logs    Logs

	Observed
	Opened

	name   string
	config Config
}

// Observed is how a service is observed.
type Observed struct {
	Telemetry *telemetry.Service
	Metrics   prometheus.Registerer // of Telemetry
	Tracer    *tracing.Tracer
}

// Opened is what was opened. Each is nil before.
type Opened struct {
	Pool      *pgxpool.Pool
	CursorKey []byte          // of the schema of Pool, once it is migrated
	Reads     *pgxpool.Pool   // for requests
	Replica   *replica.Reader // for heavy requests
	Publisher *publisher.Publisher
	Endpoint  *httpapi.Endpoint
}

// New returns the base of the service of that name, such as "ledger".
// It connects to nothing.
func New(name string, config Config, logger *slog.Logger) (b *Base, err error) {
	telemetry := config.Telemetry.Service(name, logger)
	b = &Base{
		Clock: config.WallClock(), Logger: logger, Observed: Observed{Telemetry: telemetry, Metrics: telemetry.Registerer},
		Cursors: httpapi.NewCursors(identity.OrganizationOf), name: name, config: config,
	}
	if b.Dialer, err = config.BrokerAccess.Dialer(); err != nil {
		return nil, err
	}
	if b.Proxies, err = httpapi.ParseProxies(config.TrustedProxies); err != nil {
		return nil, err
	}
	b.States = state.Config{
		Brokers: config.Brokers, Dialer: b.Dialer, SnapshotDir: state.SnapshotDir(config.StateDir, name), Metrics: b.Metrics,
	}
	b.Tracer, err = config.Tracing.Open(name, b.Metrics, logger)
	return b, err
}

// Close closes what was opened.
func (b *Base) Close() {
	if b.Publisher != nil {
		_ = b.Publisher.Close()
	}
	if b.Endpoint != nil {
		b.Endpoint.Close()
	}
	for _, pool := range []*pgxpool.Pool{b.Reads, b.Pool} {
		if pool != nil {
			pool.Close()
		}
	}
	b.Replica.Close()
	b.Tracer.Close()
}

// Config holds the settings of every service. Embed it in
// a service's configuration.
type Config struct {
	httpapi.ServerConfig `embed:""`

	Telemetry telemetry.Config `embed:""`
	Tracing   otlp.Config      `embed:""`

	Limits identity.Limits `embed:""`

	Servers `embed:""`

	Replica   replica.Config    `embed:"" prefix:"replica-"`
	Retention bus.Retention     `embed:""`
	Deletions erasure.Retention `embed:""`

	StateDir string `help:"Directory in which what other services published is kept, for a fast start. Empty: all of it is read at each start." env:"WEIR_STATE_DIR"`

	Clock func() time.Time `kong:"-"` // nil: the system's

	// Start names this start of a process with all modules: no credential
	// counts before tenants has compared them in it. Empty in processes of
	// their own, which serve while tenants is away.
	Start string `kong:"-"`
}

// LogsConfig is what a service needs beside Config that consumes weir.logs.v1.
type LogsConfig struct {
	AcceptLostRecords bool `help:"Begin with what a topic still has where this module has never read it and its beginning is gone. What is derived from it then lacks what is gone; without this the module stops and reports what is missing." env:"WEIR_ACCEPT_LOST_RECORDS"`
}

// Validate joins what is wrong with the configuration. It shows no secret.
func (c Config) Validate() error {
	return errors.Join(c.ServerConfig.Validate(), c.Limits.Validate(), c.Servers.Validate(), c.Retention.Validate(), c.Deletions.Validate(), c.Replica.Validate())
}

// NewCredentials returns credentials to be read from weir.credentials.v1.
// They fail Compared until they are compared in Start.
func (c Config) NewCredentials() *identity.Credentials {
	credentials := identity.NewCredentials(c.WallClock())
	credentials.AwaitCompared(c.Start)
	return credentials
}

// WallClock returns Clock, or the system's.
func (c Config) WallClock() func() time.Time {
	if c.Clock != nil {
		return c.Clock
	}
	return time.Now //nolint:forbidigo // this is where the clock of the system comes in
}

// OpenDatabase opens Pool, and migrates its schema.
func (b *Base) OpenDatabase(ctx context.Context, schema pg.Schema) (err error) {
	if b.Pool, err = pg.Open(ctx, b.config.DatabaseURL.Reveal(), schema.Name); err != nil {
		return err
	}
	b.States.Pool = b.Pool
	return b.Migrate(ctx, schema)
}

// Migrate migrates the schema of Pool, and reads its key to sign cursors.
func (b *Base) Migrate(ctx context.Context, schema pg.Schema) error {
	if err := pg.Migrate(ctx, b.Pool, schema.Name, schema.Migrations...); err != nil {
		return err
	}
	key, err := cursorkey.Read(ctx, b.Pool)
	if err == nil {
		b.CursorKey = key
		b.Cursors.Use(key)
	}
	return err
}

// OpenReads opens Reads, and Replica, each with that many connections.
func (b *Base) OpenReads(ctx context.Context, schema string, conns int) (err error) {
	if b.Reads, err = pg.OpenReaders(ctx, b.config.DatabaseURL.Reveal(), schema, conns); err != nil {
		return err
	}
	pg.Measure(b.Metrics, map[string]*pgxpool.Pool{"writes": b.Pool, "reads": b.Reads})
	b.Replica, err = replica.Open(ctx, b.config.Replica, replica.Options{
		Schema: schema, Conns: conns, Clock: b.Clock, Metrics: b.Metrics, Logger: b.Logger,
	})
	return err
}

// NewEraser returns an eraser of deletions from tables, in this order.
func (b *Base) NewEraser(tables []erasure.Table) *erasure.Eraser {
	return erasure.New(erasure.Config{
		Module: b.name, Tables: tables, Pool: b.Pool, Bus: b.Publisher, Clock: b.Clock, Metrics: b.Metrics, Logger: b.Logger,
	})
}

// EnsureTopics creates the service's own missing topics. It waits
// for the brokers.
func (b *Base) EnsureTopics(ctx context.Context, all []contract.Topic) error {
	return topics.EnsureWith(ctx, b.config.Brokers, b.Dialer, contract.OwnedBy(b.name, all))
}

// OpenPublisher opens Publisher, with the limits of config.
func (b *Base) OpenPublisher(config publisher.Config) (err error) {
	config.Brokers, config.Dialer, config.Metrics, config.Compression = b.config.Brokers, b.Dialer, b.Metrics, publisher.ZstdSmall
	b.Publisher, err = publisher.New(config, b.Logger)
	return err
}

// NewConsumer returns a consumer from the brokers into Pool.
func (b *Base) NewConsumer(config consumer.Config) (*consumer.Consumer, error) {
	config.Brokers, config.Dialer, config.Pool, config.Metrics = b.config.Brokers, b.Dialer, b.Pool, b.Metrics
	c, err := consumer.New(config, b.Logger)
	if err == nil {
		b.Logs.consumers = append(b.Logs.consumers, c)
	}
	return c, err
}

// Consumer completes the configuration of a consumer of weir.logs.v1, which
// never sees what is erased.
func (c LogsConfig) Consumer(config consumer.Config) consumer.Config {
	config.Topic, config.Erased, config.AcceptLost = contract.TopicLogs, erasure.IsErased, c.AcceptLostRecords
	return config
}

// NewRelay returns a relay from Pool to Publisher.
func (b *Base) NewRelay(config relay.Config) *relay.Relay {
	config.Pool, config.Publisher, config.Metrics = b.Pool, b.Publisher, b.Metrics
	return relay.New(config, b.Logger)
}

// NewRouter returns a router with only the health routes.
func (b *Base) NewRouter(ready func() error, behind func() []httpapi.Backlog) *chi.Mux {
	router := httpapi.NewRouter(httpapi.Options{
		Logger: b.Logger, Clock: b.Clock, Proxies: b.Proxies, Observe: httpapi.NewMetrics(b.Metrics).Observe, Cursors: b.Cursors, Tracer: b.Tracer,
	})
	httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return behind(), ready() })
	return router
}

// NewGuard returns a guard with the settings' limits.
func (b *Base) NewGuard(config identity.GuardConfig) *identity.Guard {
	config.Limits, config.Proxies, config.Clock, config.Metrics = b.config.Limits, b.Proxies, b.Clock, b.Metrics
	return identity.NewGuard(config)
}

// Listen opens Endpoint, which listens at the settings' addresses.
// Requests over plain HTTP are passed to see.
func (b *Base) Listen(handler http.Handler, see func(httpapi.PlaintextRequest)) (err error) {
	if b.Endpoint, err = b.config.Open(handler, b.Logger, b.Clock, b.Metrics); err == nil {
		b.Endpoint.OnPlaintext(see)
	}
	return err
}

// Logs are those that the consumers of NewConsumer apply.
type Logs struct{ consumers []*consumer.Consumer }

// Watch compares the positions of all consumers with their logs until
// ctx ends.
func (l *Logs) Watch(ctx context.Context) error {
	var watches []func(context.Context) error
	for _, c := range l.consumers {
		watches = append(watches, c.WatchLog)
	}
	return lifecycle.Run(ctx, watches...)
}

// Intact returns nil while no consumer has a position beyond the end of
// its log: see consumer.LogIntact. New offsets would come twice.
func (l *Logs) Intact() error {
	for _, c := range l.consumers {
		if err := c.LogIntact(); err != nil {
			return err
		}
	}
	return nil
}

// Servers are the brokers and the database of a service.
// A program that only reads its data needs nothing else.
type Servers struct {
	Brokers      []string       `help:"Kafka brokers, host:port." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access     `embed:"" prefix:"brokers-"`
	DatabaseURL  httpapi.Secret `help:"URL of the service's Postgres database, such as postgres://user:password@host/database." env:"WEIR_DATABASE_URL" default:""`
}

// Validate joins what is wrong with the addresses. It shows no secret.
func (s Servers) Validate() error {
	return errors.Join(process.CheckBrokers(s.Brokers), s.BrokerAccess.Validate(), process.CheckDatabaseURL("WEIR_DATABASE_URL", s.DatabaseURL.Reveal()))
}

// A Consuming is a consumer and what it is called in public.
type Consuming struct {
	Part     string
	Consumer *consumer.Consumer
}

// Backlogs returns those that catch up, for /readyz.
func Backlogs(all ...Consuming) (behind []httpapi.Backlog) {
	for _, one := range all {
		if b, exists := one.Consumer.Backlog(); exists && b.Records > 0 {
			behind = append(behind, httpapi.Backlog{Part: one.Part, Done: math.Floor(100*b.Done) / 100, SecondsLeft: math.Ceil(b.Left.Seconds())})
		}
	}
	return behind
}
