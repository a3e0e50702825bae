package throughput

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
)

// Probes post small batches to their own organizations under load, and
// poll each view until it shows them.
type probes struct {
	api     *client.Client
	tenants []measure.Tenant

	balance, groups, entries measure.Samples
	mu                       sync.Mutex
	failure                  error
}

// Intervals of polling and of probes, and the timeout of a probe.
const (
	probePoll    = 20 * time.Millisecond
	probePause   = 50 * time.Millisecond
	probeTimeout = 30 * time.Second
)

// run probes with every tenant, batch by batch, until stop is closed.
func (p *probes) run(ctx context.Context, stop <-chan struct{}) {
	var work sync.WaitGroup
	for _, t := range p.tenants {
		work.Go(func() {
			if err := p.probe(ctx, t, stop); err != nil {
				p.mu.Lock()
				p.failure = err
				p.mu.Unlock()
			}
		})
	}
	work.Wait()
}

func (p *probes) probe(ctx context.Context, t measure.Tenant, stop <-chan struct{}) error {
	b := measure.NewBody(measure.ErrorEvery) // with one error
	var bytes, errors int64
	for serial := int64(1); ; serial += measure.ErrorEvery {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(probePause):
		}
		at := time.Now()
		b.Stamp(at, serial)
		accepted, err := p.api.Post(ctx, t.Key, client.Batch{Body: b.Text})
		if err != nil {
			return err
		}
		bytes, errors = bytes+accepted.BytesUsed, errors+1
		if err := p.await(ctx, t, bytes, errors, at.UnixMilli()); err != nil {
			return err
		}
	}
}

// await polls the three views, each separately, until it shows
// the accepted batch.
func (p *probes) await(ctx context.Context, t measure.Tenant, bytes, errors, newest int64) error {
	accepted := time.Now()
	views := []struct {
		name  string
		took  *measure.Samples
		shows func() (bool, error)
	}{
		{"the balance", &p.balance, func() (bool, error) {
			balance, err := p.api.Balance(ctx, t.Billing, t.Organization)
			return balance.Accepted() >= bytes, err
		}},
		{"the error group", &p.groups, func() (bool, error) {
			groups, err := p.api.ErrorGroups(ctx, t.Key, t.Project)
			return countAll(groups) >= errors, err
		}},
		{"the read-back", &p.entries, func() (bool, error) {
			page, err := p.api.Logs(ctx, t.Key, client.LogsQuery{Project: t.Project, Limit: 1})
			return len(page.Items) > 0 && measure.StampOf(string(page.Items[0].Entry)) >= newest, err
		}},
	}
	failures := make([]error, len(views))
	var work sync.WaitGroup
	for i, view := range views {
		work.Go(func() { failures[i] = look(accepted, view.name, view.took, view.shows) })
	}
	work.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *probes) views() Views {
	of := func(took *measure.Samples) [2]time.Duration { return [2]time.Duration(took.Percentiles(50, 99)) }
	return Views{of(&p.balance), of(&p.groups), of(&p.entries)}
}

// look repeats shows until it is true and records how long that took.
func look(accepted time.Time, name string, took *measure.Samples, shows func() (bool, error)) error {
	for {
		shown, err := shows()
		switch {
		case err != nil:
			return err
		case shown:
			took.Add(time.Since(accepted))
			return nil
		case time.Since(accepted) > probeTimeout:
			return fmt.Errorf("%s does not show a batch %s after its answer", name, probeTimeout)
		}
		time.Sleep(probePoll)
	}
}

func countAll(groups []client.ErrorGroup) (count int64) {
	for _, group := range groups {
		count += group.Count
	}
	return count
}
