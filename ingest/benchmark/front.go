package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
)

// A Front is the front door alone: it accepts entries into brokers as ingest
// does, and nothing reads them. It needs no database.
type Front struct {
	Brokers           []string
	CertFile, KeyFile string
	Key               string   // an API key whose quota does not end
	Exhausted         string   // one without quota left
	Proxies           []string // whose X-Forwarded-For counts
	Profiles          string   // address of a listener with /debug/pprof; empty: none
}

// Limits of the front door: the defaults of ingest.
const (
	frontMemory   = 189 << 20
	frontTimeout  = 10 * time.Second
	frontSpread   = 8
	frontReplays  = 100_000
	frontRequests = 1_000_000_000 // a minute
)

// Run serves until ctx ends. It calls ready with its address.
func (f Front) Run(ctx context.Context, logger *slog.Logger, ready func(addr string)) error {
	base, err := service.New("ingest", service.Config{
		ServerConfig: httpapi.ServerConfig{Listen: "127.0.0.1:0", TLSCertFile: f.CertFile, TLSKeyFile: f.KeyFile, TrustedProxies: f.Proxies},
		Servers:      service.Servers{Brokers: f.Brokers}, Telemetry: telemetry.Config{MetricsListen: f.Profiles},
	}, logger)
	if err != nil {
		return err
	}
	defer base.Close()
	if err := base.EnsureTopics(ctx, contract.Topics(contract.DefaultLogPartitions, 0)); err != nil {
		return err
	}
	if err := base.OpenPublisher(publisher.Config{DeliveryTimeout: frontTimeout}); err != nil {
		return err
	}
	posts, err := f.intake(base)
	if err != nil {
		return err
	}
	router := base.NewRouter(func() error { return nil }, func() []httpapi.Backlog { return nil })
	http.MountIntake(router, posts)
	if err := base.Listen(router, func(httpapi.PlaintextRequest) {}); err != nil {
		return err
	}
	ready(base.Endpoint.Addr())
	return lifecycle.Run(ctx, base.Endpoint.Run, base.Telemetry.Run)
}

// intake is as in ingest/app, with keys and accounts of its own.
func (f Front) intake(base *service.Base) (*http.Intake, error) {
	credentials, gate := identity.NewCredentials(base.Clock), admission.NewGate(base.Clock)
	period := calendar.PeriodAt(base.Clock(), 1)
	for key, quota := range map[string]int64{f.Key: 1 << 60, f.Exhausted: 0} {
		value, err := json.Marshal(contract.Credential{
			Kind: contract.CredentialAPIKey, ID: "key_" + key[len(key)-4:], Organization: key[len(key)-4:], Project: "prj_1", Environment: "prod",
			State: contract.CredentialActive,
		})
		if err := errors.Join(err, credentials.Apply(contract.CredentialKey(key), value)); err != nil {
			return nil, err
		}
		gate.Apply(key[len(key)-4:], frontRequests, ingest.Account{
			Limit: quota, NextLimit: quota, Exhausted: quota == 0, Period: period, AnchorDay: 1,
		})
	}
	bodies := http.NewBodies(http.BodyLimits{Bytes: frontMemory, Max: 128 << 20, Requests: 256, LargeBodies: 8}, base.Clock)
	return &http.Intake{
		Service: &intake.Service{
			Credentials: credentials, Gate: gate, Clients: admission.NewClients(300), Replays: admission.NewReplays(24*time.Hour, frontReplays),
			Publisher: &bus.Publisher{Bus: base.Publisher, Spread: frontSpread, Large: bus.LargeGroups()}, Rules: rules.NewBook(base.Metrics, base.Clock),
			Meter: keyfact.NewMeter(base.Clock), Timeout: frontTimeout, Clock: base.Clock, NewBatch: func() string { return uuid.Must(uuid.NewV7()).String() },
		},
		Bodies: bodies, AnonymousBodies: bodies, Limits: ingest.DefaultLimits(), Refusals: httpapi.NewRefusals(), Ready: func() error { return nil },
		Metrics: http.NewMetrics(base.Metrics), Proxies: base.Proxies,
	}, nil
}
