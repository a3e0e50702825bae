package service

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
)

// A Base holds what every service uses.
type Base struct {
	Clock     func() time.Time
	Logger    *slog.Logger
	Dialer    *bus.Dialer    // for the brokers
	Proxies   []netip.Prefix // whose X-Forwarded headers are trusted
	Telemetry *telemetry.Service
	Metrics   prometheus.Registerer // of Telemetry
	Tracer    *tracing.Tracer
	Cursors   *httpapi.Cursors // of lists
	States    state.Config     // how topics are followed in memory; the caller sets topic and Apply

	// Each is nil until it is opened.
	Pool      *pgxpool.Pool
	CursorKey []byte          // of the schema of Pool, once it is migrated
	Reads     *pgxpool.Pool   // for requests
	Replica   *replica.Reader // for heavy requests
	Publisher *publisher.Publisher
	Endpoint  *httpapi.Endpoint

	Logs Logs

	name   string
	config Config
}

// New returns the base of the service of that name, such as "ledger".
// It connects to nothing.
func New(name string, config Config, logger *slog.Logger) (b *Base, err error) {
	telemetry := config.Telemetry.Service(name, logger)
	b = &Base{
		Clock: config.WallClock(), Logger: logger, Telemetry: telemetry, Metrics: telemetry.Registerer,
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
