package ledger

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// A reader repeats one request, without a network between.
type reader struct {
	handler     http.Handler
	token, path string
	took        measure.Samples
}

// gap is the pause of a reader, so that it does not keep a core busy.
const gap = 5 * time.Millisecond

func (r *reader) ask(ctx context.Context) (status int, body string) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, r.path, nil)
	request.Header.Set("Authorization", "Bearer "+r.token)
	recorder := httptest.NewRecorder()
	r.handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

// await waits until the ledger knows the token and the organization.
func (r *reader) await(ctx context.Context) error {
	const long = 30 * time.Second
	for deadline := time.Now().Add(long); ; time.Sleep(gap) {
		status, body := r.ask(ctx)
		if status == http.StatusOK {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s is answered %d after %s: %s", r.path, status, long, body)
		}
	}
}

// read takes times until ctx ends.
func (r *reader) read(ctx context.Context) error {
	for ticker := time.NewTicker(gap); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return nil
		case <-ticker.C:
		}
		began := time.Now()
		status, body := r.ask(context.WithoutCancel(ctx))
		if status != http.StatusOK {
			return fmt.Errorf("%s is answered %d: %s", r.path, status, body)
		}
		r.took.Add(time.Since(began))
	}
}

// readFor takes times for so long, apart from those of read.
func (r *reader) readFor(ctx context.Context, long time.Duration) (percentiles, error) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	apart := &reader{handler: r.handler, token: r.token, path: r.path}
	err := apart.read(ctx)
	return percentilesOf(&apart.took), err
}

// asks is how often the usage is requested.
const asks = 200

// measureUsage charges a year of requests, each project's every day,
// and requests all of it.
func measureUsage(ctx context.Context, w *world, r *Result) error {
	secret, err := w.token(ctx)
	if err != nil {
		return err
	}
	if err := w.acceptYear(ctx); err != nil {
		return err
	}
	replica, err := w.replica(ctx, 0)
	if err != nil {
		return err
	}
	to := time.Now().UTC()
	reader := &reader{handler: replica.Handler(), token: secret, path: fmt.Sprintf("/v1/organizations/%s/usage?limit=1000&from=%s&to=%s",
		organization(0), to.AddDate(-1, 0, 0).Format(time.RFC3339), to.Format(time.RFC3339))}
	return w.beside(ctx, replica.Run, func(ctx context.Context) error {
		if _, _, err := w.await(ctx, w.published); err != nil {
			return err
		}
		if err := reader.await(ctx); err != nil {
			return err
		}
		for range asks {
			began := time.Now()
			if status, body := reader.ask(ctx); status != http.StatusOK {
				return fmt.Errorf("%s is answered %d: %s", reader.path, status, body)
			}
			reader.took.Add(time.Since(began))
		}
		r.Usage = percentilesOf(&reader.took)
		return nil
	})
}

// acceptYear publishes ten requests for each day of a year.
func (w *world) acceptYear(ctx context.Context) error {
	first := time.Now().UTC().AddDate(-1, 0, 0)
	if err := w.create(ctx, 1, first.AddDate(0, 0, -1)); err != nil {
		return err
	}
	const perDay = 10
	for day := first; day.Before(time.Now()); day = day.AddDate(0, 0, 1) {
		requests := w.spare[:0]
		for i := range perDay {
			requests = append(requests, request(i, 1, day))
		}
		w.spare = requests
		if err := w.publish(ctx, requests...); err != nil {
			return err
		}
	}
	return nil
}
