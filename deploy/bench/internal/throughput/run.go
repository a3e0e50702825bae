package throughput

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// A result is what was measured with one broker.
type result struct {
	broker      string
	full, paced phase
	caughtUp    [subject.Views]time.Duration // after the full load
	kept        kept                         // of an entry, once views had caught up
	views       [subject.Views]measure.Samples
	idle        int64 // bytes resident before any load
}

// A phase is one stretch of load.
type phase struct {
	perSecond float64         // entries
	answers   []time.Duration // p50, p99, longest
	cpu       []time.Duration // of a batch, of each process
	memory    measure.Usage   // of the measured process
}

// A run measures one installation.
type run struct {
	*Command

	weir      *subject.Subject
	database  string
	dir       string            // of all files
	processes []measure.Process // Weir, PostgreSQL, broker, load
	api       *client.Client
	tenants   []subject.Tenant
	watched   []*subject.Watched

	newest                []atomic.Int64 // by tenant: the stamp of the last accepted entry
	serial, posted, bytes atomic.Int64   // of all batches
}

func (r *run) measure(ctx context.Context, found *result) (err error) {
	if r.api, err = r.weir.Client(r.Senders + 4*r.Probes); err != nil {
		return err
	}
	defer r.api.Close()
	found.idle = measure.UsageOf(r.weir.Pid()).Memory
	if err := r.prepare(ctx); err != nil {
		return err
	}
	before, err := r.keptNow(ctx)
	if err != nil {
		return err
	}
	say("warming up for %s, then posting as fast as %d senders get answers for %s", r.WarmUp, r.Senders, r.Saturated)
	if _, err := r.post(ctx, measure.Load{Workers: r.Senders, For: r.WarmUp}); err != nil {
		return err
	}
	if found.full, err = r.post(ctx, measure.Load{Workers: r.Senders, For: r.Saturated}); err != nil {
		return err
	}
	say("waiting until balance, groups and read-back show all of it")
	if err := r.catchUp(ctx, found); err != nil {
		return err
	}
	after, err := r.keptNow(ctx)
	if err != nil {
		return err
	}
	found.kept = after.each(before, r.posted.Load()*subject.EntriesPerBatch)
	return r.pace(ctx, found)
}

// prepare creates the organizations.
func (r *run) prepare(ctx context.Context) (err error) {
	say("creating %d organizations", r.Organizations+r.Probes)
	if r.tenants, err = subject.NewTenants(ctx, r.api, r.weir.Env.OperatorToken, "load", r.Organizations); err != nil {
		return err
	}
	r.newest = make([]atomic.Int64, len(r.tenants))
	probed, err := subject.NewTenants(ctx, r.api, r.weir.Env.OperatorToken, "probe", r.Probes)
	for _, t := range probed {
		r.watched = append(r.watched, subject.Watch(r.api, t))
	}
	return err
}

// post puts load on the tenants in turn.
func (r *run) post(ctx context.Context, load measure.Load) (found phase, err error) {
	bodies := make([]*subject.Body, load.Workers)
	for i := range bodies {
		bodies[i] = subject.NewBody(subject.EntriesPerBatch)
	}
	var answers measure.Samples
	before := measure.CPU(r.processes...)
	took, err := load.Run(ctx, func(ctx context.Context, worker int, due time.Time) error {
		at, number := time.Now(), r.serial.Add(1)
		bodies[worker].Stamp(at, number*subject.EntriesPerBatch)
		tenant := int(number) % len(r.tenants)
		accepted, err := r.api.Post(ctx, r.tenants[tenant].Key, client.Batch{Body: bodies[worker].Text})
		if err != nil {
			return fmt.Errorf("a batch was not accepted: %w", err)
		}
		answers.Add(time.Since(due))
		r.posted.Add(1)
		r.bytes.Add(accepted.BytesUsed)
		raise(&r.newest[tenant], at.UnixMilli())
		return nil
	})
	batches := float64(max(1, answers.Count()))
	return phase{
		perSecond: batches * subject.EntriesPerBatch / took.Seconds(), answers: answers.Percentiles(50, 99, 100),
		cpu: measure.Since(before, batches, r.processes...), memory: measure.UsageOf(r.weir.Pid()),
	}, errors.Join(err, context.Cause(ctx))
}

// raise sets value to at least n.
func raise(value *atomic.Int64, n int64) {
	for old := value.Load(); old < n && !value.CompareAndSwap(old, n); old = value.Load() {
	}
}

// pace measures answers and views at a fixed rate.
func (r *run) pace(ctx context.Context, found *result) (err error) {
	entries := float64(r.PacedRate)
	if entries == 0 {
		entries = found.full.perSecond / 2
	}
	say("posting %.0f entries/s for %s, looking at the views of %d organizations", entries, r.Paced, r.Probes)
	var probes errgroup.Group
	over := make(chan struct{})
	for _, w := range r.watched {
		probes.Go(func() error { return probe(ctx, over, w, found.views[:]) })
	}
	found.paced, err = r.post(ctx, measure.Load{Workers: r.Senders, For: r.Paced, PerSecond: entries / subject.EntriesPerBatch})
	close(over)
	return errors.Join(err, probes.Wait())
}

// probePause is between a batch that all views show and the next one.
const probePause = 50 * time.Millisecond

func probe(ctx context.Context, over <-chan struct{}, w *subject.Watched, took []measure.Samples) error {
	for {
		select {
		case <-over:
			return nil
		case <-time.After(probePause):
		}
		if err := w.Post(ctx); err != nil {
			return err
		}
		if err := w.Look(ctx, took); err != nil {
			return err
		}
	}
}

// Limits of the wait for views to catch up with a full load.
const (
	catchUpTimeout = 3 * time.Minute
	catchUpPoll    = 50 * time.Millisecond
)

// catchUp waits until every view shows all that is accepted.
func (r *run) catchUp(ctx context.Context, found *result) error {
	work, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for view := range subject.Views {
		work.Go(func() error {
			for missing := int64(1); missing != 0; lifecycle.Pause(ctx, catchUpPoll) {
				var err error
				found.caughtUp[view] = time.Since(begun)
				if missing, err = r.missing(ctx, view); err != nil {
					return err
				}
				if missing < 0 || time.Since(begun) > catchUpTimeout {
					return fmt.Errorf("%s lacks %d of what was accepted after %s", view, missing, time.Since(begun).Round(time.Second))
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// missing returns how many bytes, errors or tenants' newest entries a view
// does not show yet.
func (r *run) missing(ctx context.Context, view subject.View) (missing int64, err error) {
	switch view {
	case subject.Balance:
		missing = r.bytes.Load()
	case subject.Group:
		missing = r.posted.Load() * (subject.EntriesPerBatch / subject.ErrorEvery)
	}
	for i, t := range r.tenants {
		var shown int64
		switch view {
		case subject.Balance:
			balance, failed := r.api.Balance(ctx, t.Billing, t.Organization)
			shown, err = balance.Accepted(), failed
		case subject.Group:
			shown, err = t.Errors(ctx, r.api)
		default:
			newest, failed := t.Newest(ctx, r.api)
			if err = failed; newest < r.newest[i].Load() {
				shown = -1
			}
		}
		if err != nil {
			return 0, err
		}
		missing -= shown
	}
	return missing, nil
}
