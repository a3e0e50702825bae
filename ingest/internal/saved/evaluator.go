package saved

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Times of evaluations.
const (
	defaultInterval = 5 * time.Second
	settles         = 10 * time.Second // after an entry's own time its sender has sent it
	longestWait     = 10 * time.Minute // of a due alert for the log store, or for its turn; then it can't be evaluated
	retry           = 10 * time.Second // after one that had no turn, or failed
	lease           = 2 * time.Minute  // longer than an evaluation takes
	workers         = 4                // evaluations at once, of different organizations
	exampleBytes    = 200              // of a message
	askWithin       = 5 * time.Second  // the brokers
)

// Why only a part was counted.
const (
	reasonMuch     = "The search reads more than it may at once. Narrow it by a word, a value or a shorter time."
	reasonBehind   = "Entries that were accepted are not stored yet."
	reasonAway     = "Weir could not take entries until a moment ago."
	reasonFailed   = "The search failed."
	reasonBusy     = "Other searches of the organization took its turns."
	reasonDeferred = "More entries come than the organization's share lets in, and some wait to be stored."
)

// EvaluatorConfig is what an Evaluator works with.
type EvaluatorConfig struct {
	Pool     *pgxpool.Pool
	Service  *Service
	Searches *searches.Service
	Ends     func(ctx context.Context) (ingest.Positions, error) // of the log, by partition
	Group    string                                              // of consumers that keep what is searched
	Ready    func() error                                        // nil once the directory is known
	Interval time.Duration                                       // between looks for due alerts; default 5 s
	Clock    func() time.Time
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// An Evaluator evaluates due alerts. Replicas share the work: each evaluation
// is leased, and its effect and what is told of it are one transaction.
//
// An alert counts entries by their own time, up to a moment up to which the log
// store has all that was accepted. So a log store that is behind makes alerts
// late, and never wrong; missed evaluations are not caught up.
type Evaluator struct {
	EvaluatorConfig
	metrics  metrics
	progress Progress

	mu   sync.Mutex
	busy map[string]bool // organizations of which an alert is evaluated; bounded by workers
	now  moment
}

// A moment is up to when alerts can be evaluated.
type moment struct {
	looked time.Time
	alerts int
	stored time.Time // the log store has all up to then; zero: not known
	hold   time.Time // until then few entries may be an outage of ours
}

// NewEvaluator returns one that starts when Run is called.
func NewEvaluator(config EvaluatorConfig) *Evaluator {
	if config.Interval == 0 {
		config.Interval = defaultInterval
	}
	e := &Evaluator{EvaluatorConfig: config, metrics: newMetrics(config.Metrics), busy: map[string]bool{}}
	e.progress = Progress{
		Clock: config.Clock,
		Ends: func(ctx context.Context) (map[int]int64, error) {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			return config.Ends(ctx)
		},
		Stored: func(ctx context.Context) (stored map[int]int64, err error) {
			err = pg.ReadAsSystem(ctx, e.Pool, func(tx pgx.Tx) (err error) {
				stored, err = postgres.StoredPositions(ctx, tx, config.Group)
				return err
			})
			return stored, err
		},
	}
	return e
}

// Run evaluates until ctx ends.
func (e *Evaluator) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, e.Interval, e.RunOnce, lifecycle.Warn(e.Logger, "cannot evaluate alerts"))
}

// RunOnce evaluates what is due.
func (e *Evaluator) RunOnce(ctx context.Context) error {
	if err := e.Ready(); err != nil {
		return nil //nolint:nilerr // it is not time yet
	}
	var work sync.WaitGroup
	failures := make([]error, workers)
	for i := range workers {
		work.Go(func() { failures[i] = e.work(ctx) })
	}
	work.Wait()
	return errors.Join(failures...)
}

// work evaluates one alert after the other until none is due.
func (e *Evaluator) work(ctx context.Context) error {
	for ctx.Err() == nil {
		a, now, err := e.claim(ctx)
		if err != nil || a == nil {
			return err
		}
		err = e.evaluate(ctx, a, now)
		e.mu.Lock()
		delete(e.busy, a.Search.Organization)
		e.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// claim claims a due alert of an organization of which none is evaluated here; nil: there is none.
func (e *Evaluator) claim(ctx context.Context) (*postgres.Alert, moment, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.look(ctx); err != nil || e.now.alerts == 0 {
		return nil, moment{}, err
	}
	now := e.Clock()
	claiming := postgres.Claiming{
		Now: now, Due: e.now.until(), Late: now.Add(-longestWait), Fewer: !now.Before(e.now.hold), Busy: slices.Collect(maps.Keys(e.busy)), Most: 1, Leased: lease,
	}
	var claimed []postgres.Alert
	err := pg.InTxAsSystem(ctx, e.Pool, func(tx pgx.Tx) (err error) {
		claimed, err = postgres.ClaimAlerts(ctx, tx, claiming)
		return err
	})
	if err != nil || len(claimed) == 0 {
		return nil, moment{}, err
	}
	e.busy[claimed[0].Search.Organization] = true
	return &claimed[0], e.now, nil
}

// until is the end of the windows that can be evaluated.
func (m moment) until() time.Time { return m.stored.Add(-settles).Truncate(time.Second) }

// look finds again up to when all is stored, now and then.
func (e *Evaluator) look(ctx context.Context) error {
	if now := e.Clock(); now.Sub(e.now.looked) < e.Interval {
		return nil
	}
	var backlog postgres.AlertBacklog
	err := pg.ReadAsSystem(ctx, e.Pool, func(tx pgx.Tx) (err error) {
		backlog, err = postgres.FindAlertBacklog(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	e.now.looked, e.now.alerts = e.Clock(), backlog.Alerts
	e.metrics.measure(backlog, e.now.looked.Add(-settles))
	if backlog.Alerts == 0 {
		return nil
	}
	stored, err := e.progress.Reach(ctx)
	if err != nil {
		e.Logger.Warn("cannot find how far the log store is", slog.String("error", err.Error()))
	}
	if stored.IsZero() || !stored.After(e.now.stored) {
		return nil
	}
	e.now.stored = stored
	return pg.InTxAsSystem(ctx, e.Pool, func(tx pgx.Tx) error {
		e.now.hold, err = postgres.AdvanceAlertClock(ctx, tx, stored)
		return err
	})
}

// evaluate evaluates a claimed alert.
func (e *Evaluator) evaluate(ctx context.Context, a *postgres.Alert, now moment) error {
	of, err := e.count(ctx, a, now)
	switch {
	case errors.Is(err, searches.ErrNoProject): // it is about to go
		return e.postpone(ctx, a, a.Next(a.NextAt, now.until()), time.Time{})
	case isBusy(err):
		return e.postpone(ctx, a, a.NextAt, e.Clock().Add(retry))
	case err != nil:
		return errors.Join(err, e.postpone(ctx, a, a.NextAt, e.Clock().Add(retry)))
	}
	before := a.State
	outcome := a.Evaluate(of)
	if outcome.Judgement != ingest.Unjudged {
		of.Reason = "" // a part was enough
	}
	a.NextAt = a.Next(a.NextAt, of.At)
	notice := ingest.Notice{Search: a.Search, Rule: a.AlertRule, State: a.State, Before: outcome.Before, Number: a.Facts, Of: of}
	if outcome.Tell && a.State == ingest.AlertFiring && a.Examples > 0 {
		notice.Examples = e.examples(ctx, a, of)
	}
	settled := false
	err = pg.InTxAsSystem(ctx, e.Pool, func(tx pgx.Tx) error {
		settled, err = postgres.SettleAlert(ctx, tx, a, of, outcome, outcome.Tell || a.State != before)
		if err == nil && settled && outcome.Tell {
			err = e.Service.Publish(ctx, tx, &notice)
		}
		return err
	})
	if err != nil || !settled {
		return err
	}
	e.metrics.evaluations.WithLabelValues(string(outcome.Judgement)).Inc()
	if outcome.Tell {
		e.Service.Published()
	}
	return nil
}

// postpone gives a claim back: the alert is due again then, but not before a time.
func (e *Evaluator) postpone(ctx context.Context, a *postgres.Alert, next, before time.Time) error {
	return pg.InTxAsSystem(ctx, e.Pool, func(tx pgx.Tx) error { return postgres.PostponeAlert(ctx, tx, a, next, before, e.Clock()) })
}

// window is the search of an alert with its time.
func window(a *postgres.Alert, until time.Time) (ingest.Search, error) {
	search, err := a.Search.Search()
	from, to := ingest.InstantOf(until.Add(-a.Window)), ingest.InstantOf(until)
	search.From, search.To = &from, &to
	return search, err
}

// count counts an alert's window, or says why it can't be counted whole.
func (e *Evaluator) count(ctx context.Context, a *postgres.Alert, now moment) (of ingest.Evaluation, err error) {
	of.At = now.until()
	late := a.NextAt.Before(e.Clock().Add(-longestWait))
	switch {
	case a.NextAt.After(of.At):
		of.At, of.Part, of.Reason = e.Clock().Add(-settles).UTC().Truncate(time.Second), true, reasonBehind
	case a.Fewer && e.Clock().Before(now.hold):
		of.Part, of.Reason = true, reasonAway
	}
	of.At = of.At.UTC()
	search, err := window(a, of.At)
	if err != nil { // it was one when it was saved
		of.Part, of.Reason = true, err.Error()
		return of, nil //nolint:nilerr // it is shown
	}
	organization, deferred := pg.Organization(a.Search.Organization), false
	err = pg.ReadAs(ctx, e.Pool, organization, func(tx pgx.Tx) (err error) { // before: what is stored meanwhile may be counted or not
		deferred, err = postgres.HasDeferred(ctx, tx, organization, e.Group)
		return err
	})
	if err != nil {
		return of, err
	}
	counted, err := e.Searches.Count(ctx, identity.Principal{Organization: a.Search.Organization}, ingest.Count{Search: search}, 0)
	switch {
	case err != nil && late && !errors.Is(err, searches.ErrNoProject):
		if of.Part, of.Reason = true, reasonFailed; isBusy(err) {
			of.Reason = reasonBusy
		} else {
			e.Logger.Warn("cannot count for an alert", slog.String("search", a.Search.ID), slog.String("error", err.Error()))
		}
		return of, nil
	case err != nil:
		return of, err
	}
	if of.Entries = counted.Levels.Sum(); counted.From != nil {
		of.Part, of.Reason = true, reasonMuch
	}
	if deferred && !of.Part {
		of.Part, of.Reason = true, reasonDeferred
	}
	return of, nil
}

func isBusy(err error) bool {
	var problem *httpapi.Problem
	return errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests
}

// examples are the messages of the newest entries, as far as they are found.
func (e *Evaluator) examples(ctx context.Context, a *postgres.Alert, of ingest.Evaluation) (messages []string) {
	search, err := window(a, of.At)
	if err != nil {
		return nil
	}
	search.Limit, search.MaxBytes = a.Examples, 1<<20
	answer, err := e.Searches.Search(ctx, identity.Principal{Organization: a.Search.Organization}, search)
	if err != nil {
		return nil
	}
	defer answer.Close()
	for _, found := range answer.Found {
		var entry struct{ Message string }
		if json.Unmarshal(found.Text, &entry) == nil {
			messages = append(messages, clipped(entry.Message))
		}
	}
	return messages
}

// clipped is the beginning of a message, on one line.
func clipped(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > exampleBytes {
		message = strings.ToValidUTF8(message[:exampleBytes], "") + "…"
	}
	return message
}

// metrics measure evaluations.
type metrics struct {
	evaluations *prometheus.CounterVec
	late        prometheus.Gauge
	unevaluated prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	with := promauto.With(registerer)
	m := metrics{
		evaluations: with.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_ingest_alert_evaluations_total",
			Help: "Evaluations of alerts on saved searches: met, not_met, or unknown where the entries could not be counted.",
		}, []string{"judgement"}),
		late: with.NewGauge(prometheus.GaugeOpts{
			Name: "weir_ingest_alerts_late_seconds", Help: "How long the first due alert on a saved search has been due.",
		}),
		unevaluated: with.NewGauge(prometheus.GaugeOpts{
			Name: "weir_ingest_alerts_unevaluated", Help: "Alerts on saved searches that could not be evaluated for long.",
		}),
	}
	for _, judgement := range []ingest.Judgement{ingest.Met, ingest.NotMet, ingest.Unjudged} {
		m.evaluations.WithLabelValues(string(judgement))
	}
	return m
}

func (m metrics) measure(backlog postgres.AlertBacklog, now time.Time) {
	late := 0.0
	if backlog.Alerts > 0 {
		late = max(0, now.Sub(backlog.First).Seconds())
	}
	m.late.Set(late)
	m.unevaluated.Set(float64(backlog.Unevaluated))
}
