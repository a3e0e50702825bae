package ledger

import (
	"context"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// Requests come in bursts at this interval, each as large as half the
// highest rate demands.
const burst = 20 * time.Millisecond

// readAlone is how long a balance is read with no load beside it.
const readAlone = 2 * time.Second

// measureLag publishes at half the rate measured before, and takes the
// time from the broker's acknowledgement of a burst to the commit of
// its last record. Before and meanwhile it reads a balance repeatedly.
func measureLag(ctx context.Context, w *world, r *Result) error {
	secret, err := w.token(ctx)
	if err != nil {
		return err
	}
	if err := w.accept(ctx, organizations, organizations); err != nil { // creates each one's book
		return err
	}
	replica, err := w.replica(ctx, 0)
	if err != nil {
		return err
	}
	reader := &reader{handler: replica.Handler(), token: secret, path: "/v1/organizations/" + organization(0) + "/balance"}
	return w.beside(ctx, replica.Run, func(ctx context.Context) error {
		if _, _, err := w.await(ctx, w.published); err != nil {
			return err
		}
		if err := reader.await(ctx); err != nil {
			return err
		}
		if r.BalanceAlone, err = reader.readFor(ctx, readAlone); err != nil {
			return err
		}
		return w.paceBeside(ctx, reader, r)
	})
}

// paceBeside paces while a reader reads.
func (w *world) paceBeside(ctx context.Context, reader *reader, r *Result) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- reader.read(reading) }()
	if err := w.pace(ctx, r); err != nil {
		return err
	}
	stop()
	err := <-done
	r.Balance = percentilesOf(&reader.took)
	return err
}

// pace publishes for the configured time, and follows the commits.
func (w *world) pace(ctx context.Context, r *Result) error {
	each := max(1, int(float64(r.Spread)/2*burst.Seconds()))
	lags, sent := &measure.Samples{}, make(chan sentBurst, 1024)
	followed := make(chan error, 1)
	go func() { followed <- w.follow(ctx, sent, lags) }()
	began, before := time.Now(), w.published
	ticker := time.NewTicker(burst)
	defer ticker.Stop()
	for time.Since(began) < w.config.Paced {
		<-ticker.C
		if err := w.burst(ctx, each); err != nil {
			close(sent)
			return err
		}
		sent <- sentBurst{w.published, time.Now()}
	}
	r.LagRate = float64(w.published-before) / time.Since(began).Seconds()
	close(sent)
	err := <-followed
	r.Lag = percentilesOf(lags)
	return err
}

// sentBurst is how many records were acknowledged at a time.
type sentBurst struct {
	records int64
	at      time.Time
}

func (w *world) burst(ctx context.Context, n int) error {
	requests, now := w.spare[:0], time.Now().UTC()
	for i := range n {
		requests = append(requests, request(int(w.published)+i, organizations, now))
	}
	w.spare = requests
	return w.publish(ctx, requests...)
}

func (w *world) follow(ctx context.Context, sent <-chan sentBurst, lags *measure.Samples) error {
	for s := range sent {
		_, at, err := w.await(ctx, s.records)
		if err != nil {
			return err
		}
		lags.Add(at.Sub(s.at))
	}
	return nil
}

func percentilesOf(samples *measure.Samples) percentiles {
	return percentiles(samples.Percentiles(50, 99))
}
