package soak

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/weirlog/weir/deploy/client"
)

// exceedBudget sets a budget of one byte for the first tenant's visiting
// project, and sends until it refuses. It returns the number accepted before.
func (r *run) exceedBudget(ctx context.Context) (accepted int64, err error) {
	budgets := fmt.Sprintf(`[{"project":%q,"bytes":1}]`, r.visitors.project)
	path := "/organizations/" + r.tenants[0].organization + "/budgets"
	if _, err := decide(ctx, r.api, r.operator(), decision{http.MethodPut, path, budgets}); err != nil {
		return 0, err
	}
	err = until(ctx, "a budget refuses a request", func(ctx context.Context) (bool, error) {
		_, err := r.api.Post(ctx, r.visitors.key, client.Batch{Body: body(len(r.tenants), r.day, 1, r.clock.Now())})
		if isProblem(err, http.StatusTooManyRequests) {
			return strings.Contains(err.Error(), "quota_exceeded"), nil // else it asks for time to count
		}
		accepted++
		return false, err
	})
	return accepted, err
}
