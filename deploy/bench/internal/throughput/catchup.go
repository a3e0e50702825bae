package throughput

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
)

// Limits of the wait for views to catch up with a full load.
const (
	catchUpTimeout = 3 * time.Minute
	catchUpPoll    = 50 * time.Millisecond
)

// A lag is the time from the last answer until each view showed everything.
type lag struct {
	balance, groups, entries time.Duration
}

// catchUp waits until every view shows all accepted entries.
func (l *load) catchUp(ctx context.Context) (lag lag, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	var work sync.WaitGroup
	for took, missing := range map[*time.Duration]func(context.Context) (int64, error){
		&lag.balance: l.missingBytes, &lag.groups: l.missingErrors, &lag.entries: l.missingEntries,
	} {
		work.Go(func() {
			if err := until(ctx, begun, missing); err != nil {
				cancel(err)
			}
			*took = time.Since(begun)
		})
	}
	work.Wait()
	return lag, context.Cause(ctx)
}

// until waits until nothing is missing.
func until(ctx context.Context, begun time.Time, missing func(context.Context) (int64, error)) error {
	for {
		n, err := missing(ctx)
		switch {
		case err != nil || n == 0:
			return err
		case n < 0:
			return fmt.Errorf("a view shows %d more than was accepted", -n)
		case time.Since(begun) > catchUpTimeout:
			return fmt.Errorf("after %s a view still lacks %d", catchUpTimeout, n)
		}
		time.Sleep(catchUpPoll)
	}
}

func (l *load) missingBytes(ctx context.Context) (int64, error) {
	charged, err := consumed(ctx, l.api, l.tenants)
	return l.bytes.Load() - charged, err
}

func (l *load) missingErrors(ctx context.Context) (int64, error) {
	missing := l.posted.Load() * (measure.EntriesPerBatch / measure.ErrorEvery)
	for _, t := range l.tenants {
		groups, err := l.api.ErrorGroups(ctx, t.Key, t.Project)
		if err != nil {
			return 0, err
		}
		for _, group := range groups {
			missing -= group.Count
		}
	}
	return missing, nil
}

// missingEntries counts the organizations whose newest accepted entry
// can't be read yet.
func (l *load) missingEntries(ctx context.Context) (missing int64, err error) {
	for i, t := range l.tenants {
		page, err := l.api.Logs(ctx, t.Key, client.LogsQuery{Project: t.Project, Limit: 1})
		if err != nil {
			return 0, err
		}
		newest := l.newest[i].Load()
		if newest != 0 && (len(page.Items) == 0 || measure.StampOf(string(page.Items[0].Entry)) < newest) {
			missing++
		}
	}
	return missing, nil
}

// consumed adds up the ledger's charges to tenants.
func consumed(ctx context.Context, api *client.Client, tenants []measure.Tenant) (bytes int64, err error) {
	for _, t := range tenants {
		balance, err := api.Balance(ctx, t.Billing, t.Organization)
		if err != nil {
			return 0, err
		}
		bytes += balance.Accepted()
	}
	return bytes, nil
}
