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
	"github.com/weirlog/weir/shared/measure"
)

// A run measures one installation.
type run struct {
	*Command

	weir          *subject.Weir
	dir, database string
	processes     []measure.Process // Weir, PostgreSQL, broker, load
	tenants       []subject.Tenant
	watched       []*subject.Watched
	screens       []*subject.Screen // of the watched

	shown  [][subject.Views]atomic.Int64 // by tenant: what its views must show
	posted atomic.Int64                  // batches
}

// measure measures at rest, at full load, at parts of it, and at a fixed rate.
func (r *run) measure(ctx context.Context, found *result) (err error) {
	subject.Say("  creating %d organizations", r.scale.organizations+r.scale.watched)
	if r.tenants, err = r.weir.NewTenants(ctx, "load", r.scale.organizations); err != nil {
		return err
	}
	r.shown = make([][subject.Views]atomic.Int64, len(r.tenants))
	if r.watched, err = r.weir.Watch(ctx, "probe", r.scale.watched); err != nil {
		return err
	}
	for _, w := range r.watched {
		r.screens = append(r.screens, subject.NewScreen(ctx, r.weir.Client, w.Tenant))
	}
	if err := errors.Join(r.atRest(ctx, found), r.fill(ctx, found)); err != nil {
		return err
	}
	for _, part := range r.Parts {
		if err := r.at(ctx, found, fmt.Sprintf("%g %%", part), found.phases[0].perSecond*part/100, goalPart); err != nil {
			return err
		}
	}
	return r.at(ctx, found, fmt.Sprintf("%d/s", rate), rate, goalRate)
}

// atRest measures the installation without load.
func (r *run) atRest(ctx context.Context, found *result) error {
	subject.Say("  resting for %s", r.scale.rest)
	lifecycle.Pause(ctx, r.scale.rest/2) // what the start left to do
	begun, cpu := time.Now(), measure.CPU(r.processes...)
	lifecycle.Pause(ctx, r.scale.rest)
	found.rest = cpu(time.Since(begun).Seconds())
	found.idle, _ = measure.Memory(r.weir.Pid)
	return ctx.Err()
}

// fill puts full load on the installation, and waits until its views show all.
func (r *run) fill(ctx context.Context, found *result) error {
	before, err := r.kept(ctx)
	if err != nil {
		return err
	}
	subject.Say("  warming up for %s, then posting as fast as %d senders get answers for %s", r.scale.warmUp, r.scale.senders, r.Saturated)
	if _, err := r.post(ctx, r.load(r.scale.warmUp, 0)); err != nil {
		return err
	}
	p, err := r.post(ctx, r.load(r.Saturated, 0))
	if err != nil {
		return err
	}
	p.name = "full"
	found.phases = append(found.phases, p)
	subject.Say("  waiting until balance, groups and read-back show all of it")
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	found.kept, err = r.kept(ctx)
	for i := range found.kept {
		found.kept[i] = (found.kept[i] - before[i]) / (r.posted.Load() * subject.EntriesPerBatch)
	}
	return err
}

// at measures a rate: first what a batch costs, then how soon views show one,
// since looking at them costs more than a light load does.
func (r *run) at(ctx context.Context, found *result, name string, entries, most float64) error {
	subject.Say("  posting %.0f entries/s for %s, and again, looking at views", entries, r.scale.paced)
	load := r.load(r.scale.paced, entries)
	p, err := r.post(ctx, load)
	if err == nil {
		p.views, err = r.look(ctx, load)
	}
	p.name, p.most = name, most
	found.phases = append(found.phases, p)
	return err
}

// load is one of so many entries a second; 0: as many as are answered.
func (r *run) load(long time.Duration, entries float64) measure.Load {
	return measure.Load{Workers: r.scale.senders, For: long, PerSecond: entries / subject.EntriesPerBatch}
}

// post puts load on the tenants in turn.
func (r *run) post(ctx context.Context, load measure.Load) (phase, error) {
	found, err := r.send(ctx, load, r.processes, func(ctx context.Context, body *subject.Body, number int64, at time.Time) error {
		tenant := int(number) % len(r.tenants)
		accepted, err := r.weir.Post(ctx, r.tenants[tenant].Key, client.Batch{Body: body.Text})
		if err != nil {
			return fmt.Errorf("a batch was not accepted: %w", err)
		}
		shown := &r.shown[tenant]
		shown[subject.Balance].Add(accepted.BytesUsed)
		shown[subject.Group].Add(body.Errors)
		newest := &shown[subject.ReadBack]
		for old := newest.Load(); old < at.UnixMilli() && !newest.CompareAndSwap(old, at.UnixMilli()); old = newest.Load() {
		}
		return nil
	})
	found.resident, found.peak = measure.Memory(r.weir.Pid)
	return found, err
}

// send puts load on a server, and measures what a batch costs processes.
func (r *run) send(ctx context.Context, load measure.Load, processes []measure.Process,
	one func(ctx context.Context, body *subject.Body, number int64, at time.Time) error) (found phase, err error) {
	bodies := make([]*subject.Body, load.Workers)
	for i := range bodies {
		bodies[i] = subject.NewBody(subject.EntriesPerBatch, uint64(i))
	}
	var answers measure.Samples
	log, err := r.written(ctx)
	if err != nil {
		return found, err
	}
	cpu, switches := measure.CPU(processes...), measure.Switches(processes...)
	took, err := load.Run(ctx, func(ctx context.Context, worker int, due time.Time) error {
		number, at := r.posted.Add(1), time.Now()
		bodies[worker].Fill(at)
		if err := one(ctx, bodies[worker], number, at); err != nil {
			return err
		}
		answers.Add(time.Since(due))
		return nil
	})
	batches := float64(max(1, answers.Count()))
	found = phase{
		perSecond: batches * subject.EntriesPerBatch / took.Seconds(), cpu: cpu(batches), switches: switches(batches), answers: answers.Percentiles(50, 99, 100),
	}
	logged, unread := r.written(ctx)
	found.wal = float64(logged-log) / batches / subject.EntriesPerBatch
	return found, errors.Join(err, unread, context.Cause(ctx))
}

// look measures how soon views and the live tail show a batch, under a load.
func (r *run) look(ctx context.Context, load measure.Load) (found [places][]time.Duration, err error) {
	const pause = 50 * time.Millisecond // after a batch that all show
	var views [places]measure.Samples
	looking, over := context.WithCancel(ctx)
	probes := make(chan error, 1)
	go func() {
		_, err := measure.Load{Workers: len(r.watched)}.Run(looking, func(_ context.Context, worker int, _ time.Time) error {
			lifecycle.Pause(looking, pause)
			return r.probe(ctx, worker, views[:])
		})
		probes <- err
	}()
	_, err = r.post(ctx, load)
	over()
	err = errors.Join(err, <-probes)
	for view := range views {
		found[view] = views[view].Percentiles(50, 99)
	}
	return found, err
}

// probe posts a batch of a watched tenant, and waits until it is shown everywhere.
func (r *run) probe(ctx context.Context, of int, took []measure.Samples) error {
	w := r.watched[of]
	if err := w.Post(ctx); err != nil {
		return err
	}
	begun := time.Now()
	var looking errgroup.Group
	looking.Go(func() error { return w.Look(ctx, took[:subject.Views]) })
	looking.Go(func() error {
		err := r.screens[of].Await(ctx, w.Stamp())
		took[tail].Add(time.Since(begun))
		return err
	})
	return looking.Wait()
}

// catchUp waits until every view shows all that is accepted.
func (r *run) catchUp(ctx context.Context) error {
	const timeout, poll = 3 * time.Minute, 50 * time.Millisecond
	work, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for view := range subject.Views {
		work.Go(func() error {
			return measure.Until(ctx, poll, func(ctx context.Context) (bool, error) {
				lacks, err := r.lacks(ctx, view)
				if err == nil && (lacks < 0 || lacks > 0 && time.Since(begun) > timeout) {
					err = fmt.Errorf("%s lacks %d of what was accepted after %s", subject.ViewNames[view], lacks, time.Since(begun).Round(time.Second))
				}
				return lacks == 0, err
			})
		})
	}
	return work.Wait()
}

// lacks returns how many bytes, errors, or milliseconds of newest entries a
// view does not show yet.
func (r *run) lacks(ctx context.Context, view int) (missing int64, err error) {
	for i, t := range r.tenants {
		shown, err := t.Shown(ctx, r.weir.Client, view)
		if err != nil {
			return 0, err
		}
		missing += r.shown[i][view].Load() - shown
	}
	return missing, nil
}
