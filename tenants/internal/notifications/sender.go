package notifications

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// Bounds of sending.
const (
	workers         = 32          // concurrent deliveries of this process
	perOrganization = 4           // of them
	lease           = time.Minute // longer than an attempt takes: a claim that is not settled by then is due again
	pollInterval    = time.Second // between polls, if nobody wakes the sender
)

// Why a webhook is switched off.
const (
	reasonFailed = "Nothing that was sent was taken for three days."
	reasonGone   = "The endpoint answered 410 Gone."
)

// SenderConfig is what a Sender needs. Only Mailer may be nil.
type SenderConfig struct {
	Pool    *pgxpool.Pool
	Work    *unitofwork.Writer
	Client  *webhook.Client
	Keys    webhook.Keys
	Origin  string  // of links in texts, such as https://weir.example
	Mailer  *Mailer // nil: no mail is sent
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// A Sender makes due deliveries, until each is accepted
// or has failed for good. Replicas share the work.
type Sender struct {
	SenderConfig
	metrics metrics
	wake    chan struct{}

	mu       sync.Mutex
	underWay map[string]int // deliveries by organization; bounded by workers
	busy     int
}

// NewSender returns a sender.
func NewSender(config SenderConfig) *Sender {
	return &Sender{
		SenderConfig: config, metrics: newMetrics(config.Metrics), wake: make(chan struct{}, 1), underWay: map[string]int{},
	}
}

// Wake makes the sender poll at once.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends. What is under
// way then is sent again by another process.
func (s *Sender) Run(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		claimed, err := s.claim(ctx)
		if err != nil && ctx.Err() == nil {
			s.Logger.Warn("cannot claim due deliveries", slog.String("error", err.Error()))
		}
		for _, d := range claimed {
			wg.Go(func() { s.deliver(ctx, d) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-s.wake:
		}
	}
}

// An occupancy is how many deliveries may begin,
// and how many each organization has under way.
type occupancy struct {
	free          int
	organizations []string
	underWay      []int
}

func (s *Sender) occupancy() occupancy {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := occupancy{free: workers - s.busy}
	for organization, n := range s.underWay {
		now.organizations, now.underWay = append(now.organizations, organization), append(now.underWay, n)
	}
	return now
}

func (s *Sender) claim(ctx context.Context) (claimed []due, err error) {
	is := s.occupancy()
	if is.free == 0 {
		return nil, nil
	}
	now := s.Work.Now()
	err = pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, claim, now, perOrganization, is.free, now.Add(lease), is.organizations, is.underWay)
		if err != nil {
			return err
		}
		claimed, err = pgx.CollectRows(rows, scanDue)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.begin(claimed)
	return claimed, nil
}

func (s *Sender) begin(claimed []due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range claimed {
		s.underWay[d.Organization]++
		s.busy++
	}
}

func (s *Sender) end(d due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.underWay[d.Organization]--; s.underWay[d.Organization] == 0 {
		delete(s.underWay, d.Organization)
	}
}

// deliver makes one attempt and stores its outcome. If that
// can't be stored, or ctx ends, the delivery is repeated.
func (s *Sender) deliver(ctx context.Context, d due) {
	defer s.Wake()
	defer s.end(d)
	answer, err := s.send(ctx, d)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.logFailure(ctx, d, err)
	}
	after := s.judge(d, answer, err)
	if err := s.keep(ctx, after); err != nil && ctx.Err() == nil {
		s.Logger.Warn("cannot store the outcome of a delivery", slog.String("delivery", d.ID), slog.String("error", err.Error()))
		return
	}
	s.metrics.attempted(after.State)
}

// logFailure logs what a delivery does not show.
func (s *Sender) logFailure(ctx context.Context, d due, err error) {
	level := slog.LevelInfo
	if errors.Is(err, webhook.ErrUnknownKey) {
		level = slog.LevelWarn
	}
	s.Logger.Log(ctx, level, "a delivery was not taken", slog.String("organization", d.Organization), slog.String("delivery", d.ID),
		slog.String("webhook", d.Webhook), slog.String("member", d.Member), slog.String("error", d.cause(err)))
}

func (s *Sender) send(ctx context.Context, d due) (webhook.Answer, error) {
	now := s.Work.Now()
	if d.Member != "" {
		return webhook.Answer{}, s.mail(ctx, d, now)
	}
	secrets, err := s.secrets(d.to, now)
	if err != nil {
		return webhook.Answer{}, err
	}
	body, err := bodyFor(d, s.Origin)
	if err != nil {
		return webhook.Answer{}, err
	}
	return s.Client.Send(ctx, webhook.Message{ID: d.ID, URL: d.to.URL, Body: body, At: now, With: secrets})
}

// secrets are those that sign. The previous secret may be
// missing, as a rotation also helps where a key is lost.
func (s *Sender) secrets(of tenants.Webhook, now time.Time) (secrets []httpapi.Secret, err error) {
	for i, name := range of.Secrets(now) {
		secret, err := s.Keys.Secret(webhook.SecretName{Key: name.Key, Endpoint: of.ID, Generation: name.Generation})
		switch {
		case err == nil:
			secrets = append(secrets, secret)
		case i == 0 || !errors.Is(err, webhook.ErrUnknownKey):
			return nil, err
		}
	}
	return secrets, nil
}

// errNoMail means that the mail server of
// a queued mail is no longer configured.
var errNoMail = errors.New("the mail server is no longer configured")

func (s *Sender) mail(ctx context.Context, d due, now time.Time) error {
	if s.Mailer == nil {
		return errNoMail
	}
	return s.Mailer.send(ctx, d, now)
}

// An outcome is a delivery after an attempt.
type outcome struct {
	due
	switchOff string // why its webhook is switched off, unless it accepted something meanwhile; empty: it is not
	at        time.Time
}

// judge decides on the outcome of an attempt.
func (s *Sender) judge(d due, answer webhook.Answer, err error) outcome {
	after := outcome{due: d, at: s.Work.Now()}
	after.Status, after.Answer, after.Failure = answer.Status, answer.Text, ""
	if err != nil {
		after.Failure = d.reason(err)
	}
	if err == nil && (answer.OK() || d.Member != "") {
		after.State = Taken
		return after
	}
	pause, more := webhook.RetryDelay(d.Attempts, rand.Float64()) //nolint:gosec // it spreads load
	after.NextAt = after.at.Add(pause)
	switch {
	case answer.Status == http.StatusGone:
		after.State, after.switchOff = Failed, reasonGone
	case d.Member != "" && (!more || errors.Is(err, mail.ErrRefused)):
		after.State = Failed
	case !more && errors.Is(err, webhook.ErrUnknownKey):
		after.State = Failed // the endpoint is not at fault
	case !more:
		after.State, after.switchOff = Failed, reasonFailed
	}
	return after
}

// cause is why there was no answer, for the log.
func (d due) cause(err error) string {
	if d.Member != "" {
		return mailCause(err, d.reader)
	}
	return webhook.LogReason(err)
}

// reason is why there was no answer, for the delivery.
func (d due) reason(err error) string {
	if d.Member != "" {
		return mailReason(err)
	}
	return webhook.Reason(err)
}

// keep stores an outcome and its effect on the
// webhook, unless another attempt has begun since.
func (s *Sender) keep(ctx context.Context, after outcome) error {
	if after.switchOff != "" {
		return s.giveUp(ctx, after)
	}
	return pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := settleIn(ctx, tx, after)
		return err
	})
}

func settleIn(ctx context.Context, tx pgx.Tx, after outcome) (settled bool, err error) {
	tag, err := tx.Exec(ctx, settle, after.Organization, after.ID, after.Attempts, after.AttemptedAt, after.State, after.NextAt, after.Status,
		after.Answer, after.Failure)
	if err != nil || tag.RowsAffected() == 0 || after.State != Taken {
		return tag.RowsAffected() == 1, err
	}
	_, err = tx.Exec(ctx, `UPDATE webhooks SET taken_at = greatest(taken_at, $3) WHERE organization = $1 AND id = $2`, after.Organization, after.Webhook, after.at)
	return true, err
}

// giveUp also switches the webhook off, in the same transaction,
// unless it accepted something since the delivery began.
func (s *Sender) giveUp(ctx context.Context, after outcome) error {
	u, err := s.Work.BeginHidden(ctx, after.Organization, unitofwork.BySystem("webhooks"))
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	settled, err := settleIn(ctx, u.Tx(), after)
	if err != nil || !settled {
		return err
	}
	found, err := NewStore(u.Reader()).Webhook(ctx, pg.Organization(after.Organization), Ref{after.Organization, after.Webhook})
	if errors.Is(err, tenants.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if after.switchOff == reasonGone || !found.TakenAt.After(after.BegunAt) {
		if err := s.switchOff(ctx, u, after); err != nil {
			return err
		}
	}
	return u.CommitNoWait(ctx)
}

func (s *Sender) switchOff(ctx context.Context, u *unitofwork.Unit, after outcome) error {
	_, err := unitofwork.Change(ctx, u, stream(after.Organization, after.Webhook),
		func(w tenants.Webhook) ([]tenants.Event, error) { return w.SwitchOff(after.switchOff, after.at) })
	if err == nil && s.Mailer != nil {
		err = mailOff(ctx, u.Tx(), after)
	}
	if err == nil {
		s.Logger.Warn("a webhook was switched off", slog.String("organization", after.Organization), slog.String("webhook", after.Webhook),
			slog.String("reason", after.switchOff))
	}
	return err
}

// measureInterval is the time between two measurements.
const measureInterval = 15 * time.Second

type metrics struct {
	attempts *prometheus.CounterVec
	late     prometheus.Gauge
	off      prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	make := promauto.With(registerer)
	return metrics{
		attempts: make.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_tenants_deliveries_total",
			Help: "Attempts to send something to a webhook, by what the delivery is after it: taken, pending (it is tried again) or failed (it is not).",
		}, []string{"state"}),
		late: make.NewGauge(prometheus.GaugeOpts{
			Name: "weir_tenants_deliveries_late_seconds", Help: "How long the oldest due delivery has been due; 0: none is.",
		}),
		off: make.NewGauge(prometheus.GaugeOpts{Name: "weir_tenants_webhooks_off", Help: "Webhooks that are switched off, by people or because they failed."}),
	}
}

func (m metrics) attempted(state State) { m.attempts.WithLabelValues(string(state)).Inc() }

// Measure measures the tables until ctx ends.
func (s *Sender) Measure(ctx context.Context) error {
	return lifecycle.Every(ctx, measureInterval, s.measure, lifecycle.Warn(s.Logger, "cannot measure deliveries"))
}

func (s *Sender) measure(ctx context.Context) error {
	var off int64
	var oldest *time.Time
	err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM webhooks WHERE off_at IS NOT NULL), (SELECT min(next_at) FROM deliveries WHERE state = 'pending')`).
			Scan(&off, &oldest)
	})
	if err != nil {
		return err
	}
	s.metrics.off.Set(float64(off))
	s.metrics.late.Set(lateness(oldest, s.Work.Now()))
	return nil
}

func lateness(oldest *time.Time, now time.Time) float64 {
	if oldest == nil {
		return 0
	}
	return max(0, now.Sub(*oldest).Seconds())
}
