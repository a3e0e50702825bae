package notifications

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

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
