package allinone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/telemetry"
)

// An App is all of Weir in this process, for one Run.
type App struct {
	config   Config
	logger   *slog.Logger
	dir      *dataDir
	backends *backends
	listener net.Listener
	server   *httpapi.Server
	metrics  *telemetry.Service
	gateway  *gateway.Gateway
	modules  map[gateway.Module]module
	env      DevEnv
	started  chan struct{}

	ends []func() error // in the order of opening
}

// New locks the data directory and the address, starts what is not
// given, and builds the modules. If it fails nothing is left running;
// its error is one line with a remedy.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.Telemetry.Registry = telemetry.New()
	a := &App{config: config, logger: logger, metrics: config.Telemetry.Service("weir", logger), started: make(chan struct{})}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// open goes from what fails fast to what takes long.
func (a *App) open(ctx context.Context) (err error) {
	if a.dir, err = openDataDir(a.config.DataDir); err != nil {
		return err
	}
	a.atEnd(a.dir.close)
	a.backends = &backends{config: a.config, dir: a.dir, metrics: a.metrics.Registerer, logger: a.logger, atEnd: a.atEnd}
	if a.listener, err = httpapi.Listen(a.config.Listen); err != nil {
		return err
	}
	a.atEnd(a.closeListener)
	if err := a.openServer(); err != nil {
		return err
	}
	if err := a.openEnv(); err != nil {
		return err
	}
	return a.openModules(ctx)
}

// openServer creates certificate and server; the handler comes later.
func (a *App) openServer() error {
	files, err := localca.Ensure(a.dir.tls(), time.Now(), a.config.host())
	if err != nil {
		return err
	}
	config, err := httpapi.LoadTLS(files.Server, files.ServerKey, a.logger)
	if err != nil {
		return err
	}
	proxies, err := httpapi.ParseProxies(a.config.TrustedProxies)
	if err != nil {
		return err
	}
	a.server = &httpapi.Server{
		TLS: config, TrustedProxies: proxies, Logger: a.logger, Clock: time.Now, Drain: a.config.Drain,
		Limits: a.config.Connections.Limits(), Metrics: a.metrics.Registerer,
	}
	return nil
}

func (a *App) openModules(ctx context.Context) error {
	b := a.backends
	if err := b.open(ctx); err != nil {
		return err
	}
	shared := given{
		databaseURL: httpapi.Secret(b.databaseURL), brokers: b.brokers, access: b.access, proxies: a.config.TrustedProxies,
		stateDir: a.dir.state(), drain: a.config.Drain, operator: httpapi.Secret(a.env.OperatorToken), metrics: a.config.Telemetry.Registry,
		origin: strings.TrimSuffix(a.env.ConsoleURL, "/console"), caFile: a.env.CAFile, webhookKeys: httpapi.Secret(a.env.WebhookKeys), start: randomHex(16),
	}
	var err error
	if a.modules, err = a.config.Modules.build(ctx, shared, a.logger); err != nil {
		return err
	}
	local := map[gateway.Module]gateway.Backend{}
	for name, module := range a.modules {
		local[name] = gateway.Local(module.Handler(), module.Ready, module.Behind)
	}
	if a.gateway, err = gateway.New(local, a.server.TrustedProxies, a.logger, time.Now, b.answer); err != nil {
		closeAll(a.modules)
	}
	a.server.Handler, a.server.OnPlaintext = a.gateway, plaintextReports(a.modules)
	return err
}

// atEnd adds a function that closes what was just opened.
func (a *App) atEnd(end func() error) { a.ends = append(a.ends, end) }

// close closes everything in reverse order.
func (a *App) close() (err error) {
	for _, end := range slices.Backward(a.ends) {
		err = errors.Join(err, end())
	}
	a.ends = nil
	return err
}

func (a *App) closeListener() error {
	if err := a.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Started is closed once everything can serve and the demo organization
// exists, however much the modules have yet to apply; then Env may be called.
func (a *App) Started() <-chan struct{} { return a.started }

// Prune prunes all modules at once; Run does it periodically.
func (a *App) Prune(ctx context.Context) (err error) {
	for name, module := range a.modules {
		if failed := module.Prune(ctx); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
		}
	}
	return err
}

// Env returns how to reach the demo organization.
func (a *App) Env() DevEnv { return a.env }

// Run serves until ctx ends or something fails. It stops without loss:
// current requests are answered, the modules commit what they have
// accepted, then broker and database stop.
func (a *App) Run(ctx context.Context) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	worked := make(chan error, 1)
	go func() { worked <- a.work(working) }()
	failure := make(chan error, 1)
	err := lifecycle.Run(ctx, a.serve, a.prepare, a.reportBacklog, a.metrics.Run, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-worked:
			failure <- err
			return cmp.Or(err, errEnded)
		}
	})
	stopWork()
	if len(failure) == 0 {
		err = errors.Join(err, <-worked)
	}
	return errors.Join(err, a.close())
}

func (a *App) serve(ctx context.Context) error { return a.server.Serve(ctx, a.listener) }

// errEnded means that the modules have ended by themselves.
var errEnded = errors.New("the modules have ended")

// work runs the modules' loops, and those that look after their backends.
func (a *App) work(ctx context.Context) error {
	runs := a.backends.loops()
	for name, module := range a.modules {
		runs = append(runs, func(ctx context.Context) error {
			if err := module.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return lifecycle.Run(ctx, runs...)
}

// Intervals of a start. It has no limit: whatever takes long, such as
// reading a long log, would take as long the next time.
const (
	readyPoll   = 20 * time.Millisecond
	startReport = 5 * time.Second // between lines of the log
)

// prepare waits until all modules can serve, and creates the demo
// organization.
func (a *App) prepare(ctx context.Context) error {
	a.awaitReady(ctx)
	if !a.config.NoDemo && ctx.Err() == nil {
		if err := (&demo{&a.env, a.dir.env(), a.logger}).await(ctx); err != nil {
			return fmt.Errorf("cannot set the demo organization up: %w", err)
		}
	}
	if ctx.Err() == nil {
		close(a.started)
	}
	return ctx.Err()
}

func (a *App) awaitReady(ctx context.Context) {
	begun := time.Now()
	report := time.NewTicker(startReport)
	defer report.Stop()
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, readyPoll) {
		_, err := a.gateway.Ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-report.C:
			a.logger.Warn("not ready yet", slog.Duration("after", time.Since(begun).Round(time.Second)), slog.String("error", err.Error()))
		default:
		}
	}
}

// reportBacklog logs what the modules have yet to apply while they do,
// for people who watch weir run: their consumers do so as information.
func (a *App) reportBacklog(ctx context.Context) error {
	reported := false
	for lifecycle.Pause(ctx, startReport); ctx.Err() == nil; lifecycle.Pause(ctx, startReport) {
		behind, _ := a.gateway.Ready(ctx) // others log what is not ready
		switch {
		case len(behind) > 0:
			a.logger.Warn("catching up", slog.String("behind", describe(behind)))
		case reported:
			a.logger.Warn("caught up")
		}
		reported = len(behind) > 0
	}
	return nil
}

// describe names parts with how much is done and the time for the rest.
func describe(behind []httpapi.Backlog) string {
	parts := make([]string, len(behind))
	for i, b := range behind {
		parts[i] = fmt.Sprintf("%s %.0f %%", b.Part, 100*b.Done)
		if b.SecondsLeft > 0 {
			parts[i] += fmt.Sprintf(", %s left", time.Duration(b.SecondsLeft)*time.Second)
		}
	}
	return strings.Join(parts, "; ")
}

// Routes returns the routes of all modules, such as "GET
// /console/errors/{group}", sorted, each once.
func (a *App) Routes() (routes []string, err error) {
	for name, module := range a.modules {
		router, ok := module.Handler().(chi.Routes)
		if !ok {
			return nil, fmt.Errorf("the handler of %s has no routes to walk", name)
		}
		err := chi.Walk(router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			routes = append(routes, method+" "+route)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot walk the routes of %s: %w", name, err)
		}
	}
	slices.Sort(routes)
	return slices.Compact(routes), nil
}
