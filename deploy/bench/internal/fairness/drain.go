package fairness

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// drainPoll is the interval of looks whether a noisy tenant's own views
// have caught up.
const drainPoll = 200 * time.Millisecond

// drain posts a batch of a noisy tenant and waits until its own log and
// groups show it, and so all deferred records of the attack: they must
// not disturb the next measurement.
func (r *run) drain(ctx context.Context, of measure.Tenant) time.Duration {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	body := measure.NewBody(measure.ErrorEvery)
	body.Stamp(begun, 0)
	for _, done := range []func() bool{
		func() bool {
			_, err := r.api.Post(ctx, of.Key, client.Batch{Body: body.Text})
			return err == nil
		},
		func() bool { return r.stored(ctx, of, begun) },
		func() bool { return r.grouped(ctx, of, begun) },
	} {
		for ctx.Err() == nil && !done() {
			lifecycle.Pause(ctx, drainPoll)
		}
	}
	return time.Since(begun)
}

// stored reports whether a tenant's log shows its batch of a time.
func (r *run) stored(ctx context.Context, of measure.Tenant, at time.Time) bool {
	at = at.Truncate(time.Millisecond) // as timestamps are
	page, err := r.api.Logs(ctx, of.Key, client.LogsQuery{Project: of.Project, From: at, To: at.Add(time.Second), Limit: 1})
	return err == nil && len(page.Items) > 0
}

// grouped reports whether a tenant's groups count its batch of a time.
func (r *run) grouped(ctx context.Context, of measure.Tenant, at time.Time) bool {
	answer, err := r.api.Call(ctx, client.Request{
		Method: http.MethodGet, Path: "/projects/" + url.PathEscape(of.Project) + "/error-groups?limit=1", Header: map[string]string{"X-Api-Key": of.Key},
	})
	var newest client.List[client.ErrorGroup]
	if err != nil || json.Unmarshal(answer.Body, &newest) != nil || len(newest.Items) == 0 {
		return false
	}
	return !newest.Items[0].LastSeen.Before(at.Truncate(time.Millisecond))
}
