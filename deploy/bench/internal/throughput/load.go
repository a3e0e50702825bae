package throughput

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
)

// A load posts batches of many organizations.
type load struct {
	api     *client.Client
	tenants []measure.Tenant
	newest  []atomic.Int64 // by tenant: the event time of the last accepted entry, ms
	serial  atomic.Int64   // stamped into entries
	next    atomic.Int64   // tenant

	bytes   atomic.Int64 // charged for all accepted batches
	posted  atomic.Int64 // batches, never reset
	batches atomic.Int64
	failed  atomic.Int64
	failure atomic.Pointer[error] // the first
	took    *measure.Samples
}

func newLoad(api *client.Client, tenants []measure.Tenant) *load {
	return &load{api: api, tenants: tenants, newest: make([]atomic.Int64, len(tenants)), took: &measure.Samples{}}
}

// reset drops the counts, but keeps the next entries and tenants.
func (l *load) reset() {
	l.batches.Store(0)
	l.failed.Store(0)
	l.took = &measure.Samples{}
}

// post sends b for the next tenant and counts it; begun is when it was due.
func (l *load) post(ctx context.Context, b *measure.Body, begun time.Time) {
	at := time.Now()
	b.Stamp(at, l.serial.Add(measure.EntriesPerBatch))
	number := int(l.next.Add(1)) % len(l.tenants)
	accepted, err := l.api.Post(ctx, l.tenants[number].Key, client.Batch{Body: b.Text})
	if err != nil {
		if ctx.Err() == nil {
			l.failed.Add(1)
			l.failure.CompareAndSwap(nil, &err)
		}
		return
	}
	l.took.Add(time.Since(begun))
	l.batches.Add(1)
	l.posted.Add(1)
	l.bytes.Add(accepted.BytesUsed)
	raise(&l.newest[number], at.UnixMilli())
}

// raise sets value to at least n.
func raise(value *atomic.Int64, n int64) {
	for old := value.Load(); old < n && !value.CompareAndSwap(old, n); old = value.Load() {
	}
}

// saturate posts from a number of senders for d; each sends its next
// batch after the last answer.
func (l *load) saturate(ctx context.Context, senders int, d time.Duration) time.Duration {
	end, begun := time.Now().Add(d), time.Now()
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			for b := measure.NewBody(measure.EntriesPerBatch); time.Now().Before(end) && ctx.Err() == nil; {
				l.post(ctx, b, time.Now())
			}
		})
	}
	work.Wait()
	return time.Since(begun)
}

// pace posts at a fixed rate for d: a batch that waits for a free
// sender counts from when it was due.
func (l *load) pace(ctx context.Context, senders int, perSecond float64, d time.Duration) time.Duration {
	begun := time.Now()
	due := make(chan time.Time, int(perSecond*d.Seconds())+1)
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			b := measure.NewBody(measure.EntriesPerBatch)
			for at := range due {
				l.post(ctx, b, at)
			}
		})
	}
	interval := time.Duration(float64(time.Second) / perSecond)
	for at := begun; at.Sub(begun) < d && ctx.Err() == nil; at = at.Add(interval) {
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	work.Wait()
	return time.Since(begun)
}

// err returns the first failure as text, nil without any.
func (l *load) err() error {
	if first := l.failure.Load(); first != nil {
		return fmt.Errorf("%d batches were not accepted, the first: %w", l.failed.Load(), *first)
	}
	return nil
}
