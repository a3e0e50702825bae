package integrity

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// A Sealer links the chains hour by hour, once everything accepted in
// an hour is booked. One replica does so at a time.
type Sealer struct {
	Pool     *pgxpool.Pool
	Time     unitofwork.DatabaseTime
	End      snapshot.LogEnd
	Interval time.Duration
	Logger   *slog.Logger

	Sealed     prometheus.Gauge
	Checkpoint prometheus.Gauge

	booked  snapshot.Horizon
	through time.Time // the value of Sealed
}

// NewSealed returns the metric of how far all replicas have sealed.
func NewSealed(registerer prometheus.Registerer) prometheus.Gauge {
	return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_ledger_sealed_timestamp_seconds",
		Help: "Unix time of the end of the last hour through which everything is sealed in the chains, also where there was nothing to seal; 0 before that is known.",
	})
}

// NewCheckpoint returns the metric of the last checkpoint.
func NewCheckpoint(registerer prometheus.Registerer) prometheus.Gauge {
	return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_ledger_checkpoint_timestamp_seconds",
		Help: "Unix time of the hour of the last checkpoint, from which the ledger can be rebuilt without the log before it; 0 where there is none.",
	})
}

// Run seals until ctx ends. It logs a failure and retries after Interval.
func (s *Sealer) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, s.Interval, s.RunOnce, lifecycle.Warn(s.Logger, "cannot seal an hour"))
}

// RunOnce seals all hours that are over and booked. It reads the log's
// end only if an hour may be due.
func (s *Sealer) RunOnce(ctx context.Context) error {
	now, due, err := s.look(ctx)
	if err != nil || !due {
		return err
	}
	through, err := s.booked.Move(ctx, s.Pool, now, s.End)
	if err != nil || through.IsZero() {
		return err
	}
	by := through.Add(-snapshot.Settling)
	if err := s.sealDue(ctx, by); err != nil {
		return err
	}
	s.advance(by.Truncate(time.Hour))
	return nil
}

// look reads the time, the progress of sealing, and whether an hour may be due.
func (s *Sealer) look(ctx context.Context) (now time.Time, due bool, err error) {
	err = pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
		if now, err = s.Time(ctx, tx); err != nil {
			return err
		}
		taken, err := postgres.LastCheckpoint(ctx, tx)
		if err != nil {
			return err
		}
		if !taken.IsZero() {
			s.Checkpoint.Set(float64(taken.Unix()))
		}
		last, sealed, err := postgres.LastSealed(ctx, tx)
		if err == nil && sealed {
			s.advance(last.Add(time.Hour))
		}
		if err != nil {
			return err
		}
		due, err = s.isDue(ctx, tx, now.Add(-snapshot.Settling))
		return err
	})
	return now, due, err
}

// isDue reports whether an hour ended by an instant that is not sealed
// or may have unbooked records.
func (s *Sealer) isDue(ctx context.Context, tx pgx.Tx, by time.Time) (bool, error) {
	if by.Truncate(time.Hour).After(s.through) {
		return true, nil
	}
	return postgres.HasUnsealed(ctx, tx, by)
}

// sealDue seals the hours that ended by an instant. Checking first
// avoids the lock of a cut, for which bookings wait. Charges of an hour
// are found by their booking.
func (s *Sealer) sealDue(ctx context.Context, by time.Time) error {
	var first time.Time
	var due bool
	err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		first, due, err = postgres.FirstUnsealed(ctx, tx, by)
		return err
	})
	if err != nil || !due {
		return err
	}
	from := calendar.Earlier(first, by.Add(-24*time.Hour)) // replays may be older
	err = pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error { return postgres.Summarize(ctx, tx, from, by) })
	if err != nil {
		return err
	}
	return Seal(ctx, s.Pool, by)
}

// advance raises the metric through an instant: an hour without charges
// or decisions needs no seal.
func (s *Sealer) advance(through time.Time) {
	if through.After(s.through) {
		s.through = through
		s.Sealed.Set(float64(through.Unix()))
	}
}

// Seal seals the hours that ended by an instant, with the checkpoints
// that are due. Everything accepted by then must be booked.
func Seal(ctx context.Context, pool *pgxpool.Pool, by time.Time) error {
	return seal(ctx, pool, by, takeCheckpoint)
}

// SealAgain is Seal for a ledger that is rebuilt: it has the checkpoints
// of the other.
func SealAgain(ctx context.Context, pool *pgxpool.Pool, by time.Time) error {
	return seal(ctx, pool, by, func(context.Context, *pgxpool.Pool) error { return nil })
}

// takeCheckpoint takes the checkpoint of the hour that is cut, if one is due.
func takeCheckpoint(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		_, err := postgres.TakeCheckpoint(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot take a checkpoint: %w", err)
	}
	return nil
}

func seal(ctx context.Context, pool *pgxpool.Pool, by time.Time, checkpoint func(context.Context, *pgxpool.Pool) error) error {
	for more := true; more; {
		err := pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
			_, err := postgres.CutHour(ctx, tx, by)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot cut an hour of the log: %w", err)
		}
		if err := checkpoint(ctx, pool); err != nil {
			return err
		}
		err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) (err error) {
			more, err = sealNext(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sealNext links the cut hour, even after a crash between the two;
// found is false where there is none.
func sealNext(ctx context.Context, tx pgx.Tx) (found bool, err error) {
	hour, found, err := postgres.UnsealedHour(ctx, tx)
	if err == nil && found {
		err = postgres.SealHour(ctx, tx, hour)
	}
	if err != nil {
		return found, fmt.Errorf("cannot seal the hour %s: %w", hour.Format(time.RFC3339), err)
	}
	return found, nil
}

// Chain lists the links of an organization's chain, the latest first.
func (s *Service) Chain(ctx context.Context, organization string, query postgres.LinkQuery) ([]ledger.Link, error) {
	return snapshot.Of(ctx, s.Reads, organization, func(tx pgx.Tx, organization pg.Organization) ([]ledger.Link, error) {
		return postgres.Links(ctx, tx, organization, query)
	})
}

// A Service verifies an organization's books.
type Service struct {
	Reads *snapshot.Reader
	Kept  ledger.Retention
}
