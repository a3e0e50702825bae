package subject

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// A View is where an accepted batch shows.
type View int

// The views.
const (
	Balance View = iota
	Group
	ReadBack
	Views // how many there are
)

// String names the view.
func (v View) String() string { return [...]string{"balance", "group", "read-back"}[v] }

// viewTimeout limits the wait for a view.
const viewTimeout = 30 * time.Second

// A Watched tenant posts small batches, one with an error at a time, and
// looks at its views until they show each.
type Watched struct {
	Tenant
	api           *client.Client
	body          *Body
	bytes, errors int64
	newest        time.Time
}

// Watch returns a watched tenant.
func Watch(api *client.Client, t Tenant) *Watched {
	return &Watched{Tenant: t, api: api, body: NewBody(ErrorEvery)}
}

// Post posts a batch.
func (w *Watched) Post(ctx context.Context) error {
	at := time.Now()
	w.body.Stamp(at, w.errors*ErrorEvery+1)
	accepted, err := w.api.Post(ctx, w.Key, client.Batch{Body: w.body.Text})
	if err != nil {
		return err
	}
	w.bytes, w.errors, w.newest = w.bytes+accepted.BytesUsed, w.errors+1, at
	return nil
}

// Look polls the views, each by itself, until they show what is posted. No
// view shows a batch at once, so it waits before the first look.
func (w *Watched) Look(ctx context.Context, took []measure.Samples) error {
	var looking errgroup.Group
	begun := time.Now()
	for view := range Views {
		looking.Go(func() error {
			for {
				time.Sleep(poll)
				shown, err := w.shows(ctx, view)
				passed := time.Since(begun)
				if err != nil {
					return fmt.Errorf("%s: %w", view, err)
				}
				if shown || passed > viewTimeout {
					took[view].Add(passed)
				}
				if shown {
					return nil
				}
				if passed > viewTimeout {
					return fmt.Errorf("%s: it does not show a batch %s after its answer", view, viewTimeout)
				}
			}
		})
	}
	return looking.Wait()
}

func (w *Watched) shows(ctx context.Context, view View) (bool, error) {
	switch view {
	case Balance:
		balance, err := w.api.Balance(ctx, w.Billing, w.Organization)
		return balance.Accepted() >= w.bytes, err
	case Group:
		count, err := w.Errors(ctx, w.api)
		return count >= w.errors, err
	default:
		newest, err := w.Newest(ctx, w.api)
		return newest >= w.newest.UnixMilli(), err
	}
}

// Errors returns how many errors a tenant's groups count.
func (t Tenant) Errors(ctx context.Context, api *client.Client) (count int64, err error) {
	groups, err := api.ErrorGroups(ctx, t.Key, t.Project)
	for _, group := range groups {
		count += group.Count
	}
	return count, err
}

// Newest returns the stamp of the newest entry that can be read, in Unix
// milliseconds; 0 without one.
func (t Tenant) Newest(ctx context.Context, api *client.Client) (int64, error) {
	page, err := api.Logs(ctx, t.Key, client.LogsQuery{Project: t.Project, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return 0, err
	}
	return StampOf(string(page.Items[0].Entry)), nil
}
