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

	shown  [][subject.Views]atomic.Int64 // by tenant: what its views must show
	posted atomic.Int64                  // batches
}

func (r *run) measure(ctx context.Context, broker string) (found *result, err error) {
	subject.Say("  creating %d organizations", r.Organizations+r.Probes)
	if r.tenants, err = r.weir.NewTenants(ctx, "load", r.Organizations); err != nil {
		return nil, err
	}
	r.shown = make([][subject.Views]atomic.Int64, len(r.tenants))
	if r.watched, err = r.weir.Watch(ctx, "probe", r.Probes); err != nil {
		return nil, err
	}
	found = &result{broker: broker}
	for _, part := range []func(context.Context, *result) error{r.rest, r.fill, r.pace} {
		if err := part(ctx, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rest measures the installation without load.
func (r *run) rest(ctx context.Context, found *result) error {
	subject.Say("  resting for %s", r.Rest)
	lifecycle.Pause(ctx, r.Rest/2) // what the start left to do
	begun, cpu := time.Now(), measure.CPU(r.processes...)
	lifecycle.Pause(ctx, r.Rest)
	found.rest = cpu(time.Since(begun).Seconds())
	found.idle, _ = measure.Memory(r.weir.Pid)
	return ctx.Err()
}

// fill puts full load on the installation, and waits until its views show all.
func (r *run) fill(ctx context.Context, found *result) error {
	before, err := r.keptNow(ctx)
	if err != nil {
		return err
	}
	subject.Say("  warming up for %s, then posting as fast as %d senders get answers for %s", r.WarmUp, r.Senders, r.Saturated)
	if _, err := r.post(ctx, r.load(r.WarmUp, 0)); err != nil {
		return err
	}
	full, err := r.post(ctx, r.load(r.Saturated, 0))
	if err != nil {
		return err
	}
	full.name = "full"
	found.phases = append(found.phases, full)
	subject.Say("  waiting until balance, groups and read-back show all of it")
	if err := r.catchUp(ctx, found); err != nil {
		return err
	}
	after, err := r.keptNow(ctx)
	found.kept = after.each(before, r.posted.Load()*subject.EntriesPerBatch)
	return err
}

// load is one for a while of so many entries a second; 0: as many as are
// answered.
func (r *run) load(long time.Duration, entries float64) measure.Load {
	return measure.Load{Workers: r.Senders, For: long, PerSecond: entries / subject.EntriesPerBatch}
}

// post puts load on the tenants in turn.
func (r *run) post(ctx context.Context, load measure.Load) (found phase, err error) {
	before, err := r.keptNow(ctx)
	if err != nil {
		return found, err
	}
	found, err = r.send(ctx, load, r.processes, func(ctx context.Context, body *subject.Body, number int64, at time.Time) error {
		tenant := int(number) % len(r.tenants)
		accepted, err := r.weir.Post(ctx, r.tenants[tenant].Key, client.Batch{Body: body.Text})
		if err != nil {
			return fmt.Errorf("a batch was not accepted: %w", err)
		}
		shown := &r.shown[tenant]
		shown[subject.Balance].Add(accepted.BytesUsed)
		shown[subject.Group].Add(body.Errors)
		raise(&shown[subject.ReadBack], at.UnixMilli())
		return nil
	})
	found.resident, found.peak = measure.Memory(r.weir.Pid)
	if err != nil {
		return found, err
	}
	after, err := r.keptNow(ctx)
	found.wal = after.each(before, found.batches*subject.EntriesPerBatch).wal
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
	found = phase{batches: int64(max(1, answers.Count())), answers: answers.Percentiles(50, 99, 100)}
	found.perSecond = float64(found.batches) * subject.EntriesPerBatch / took.Seconds()
	found.cpu, found.switches = cpu(float64(found.batches)), switches(float64(found.batches))
	return found, errors.Join(err, context.Cause(ctx))
}

// raise sets value to at least n.
func raise(value *atomic.Int64, n int64) {
	for old := value.Load(); old < n && !value.CompareAndSwap(old, n); old = value.Load() {
	}
}

// pace measures the fixed rates: first what a batch costs, then how soon
// views show one, since looking at them costs more than a light load does.
func (r *run) pace(ctx context.Context, found *result) error {
	full := found.phases[0].perSecond
	for _, part := range r.Parts {
		if err := r.at(ctx, found, fmt.Sprintf("%g %%", part), full*part/100, goalPart); err != nil {
			return err
		}
	}
	for _, rate := range r.Rates {
		if err := r.at(ctx, found, fmt.Sprintf("%g/s", rate), rate, goalRate); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) at(ctx context.Context, found *result, name string, entries, most float64) error {
	subject.Say("  posting %.0f entries/s for %s", entries, r.Paced)
	load := r.load(r.Paced, entries)
	p, err := r.post(ctx, load)
	if err == nil && len(r.watched) > 0 {
		p.views, err = r.look(ctx, load)
	}
	p.name, p.most = name, most
	found.phases = append(found.phases, p)
	return err
}

// look measures how soon views show a batch, under a load.
func (r *run) look(ctx context.Context, load measure.Load) (found [subject.Views][]time.Duration, err error) {
	subject.Say("    and again, looking at the views of %d organizations", r.Probes)
	const pause = 50 * time.Millisecond // after a batch that all views show
	var probes errgroup.Group
	over := make(chan struct{})
	var views [subject.Views]measure.Samples
	for _, w := range r.watched {
		probes.Go(func() (err error) {
			for err == nil {
				select {
				case <-over:
					return nil
				case <-time.After(pause):
				}
				if err = w.Post(ctx); err == nil {
					err = w.Look(ctx, views[:])
				}
			}
			return err
		})
	}
	_, err = r.post(ctx, load)
	close(over)
	err = errors.Join(err, probes.Wait())
	for view := range views {
		found[view] = views[view].Percentiles(50, 99)
	}
	return found, err
}

// catchUp waits until every view shows all that is accepted.
func (r *run) catchUp(ctx context.Context, found *result) error {
	const timeout, poll = 3 * time.Minute, 50 * time.Millisecond
	work, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for view := range subject.Views {
		work.Go(func() error {
			return measure.Until(ctx, poll, func(ctx context.Context) (bool, error) {
				found.caughtUp[view] = time.Since(begun)
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
