package fairness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// hammer sends requests that are refused: with unknown keys, for
// unknown paths and methods, and sign-ins with wrong passwords. It does
// not rest when it is refused.
func hammer(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	kinds := []func(ctx context.Context, number int64) (*http.Request, error){n.unknownKey, n.unknownPath, n.unknownMethod, n.wrongPassword}
	return repeat(ctx, 32, func(worker int) error {
		r, err := kinds[worker%len(kinds)](ctx, serial.Add(1))
		if err != nil {
			return err
		}
		answer, err := n.http.Do(r)
		if err != nil {
			return err
		}
		n.outcome.read(answer)
		return nil
	})
}

func (n *noisy) unknownKey(ctx context.Context, number int64) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.BaseURL+"/logs", strings.NewReader(`{"logs":[]}`))
	if err == nil {
		r.Header = http.Header{"X-Api-Key": {fmt.Sprint(n.Tenant.Key, number)}, "Content-Type": {"application/json"}}
	}
	return r, err
}

func (n *noisy) unknownPath(ctx context.Context, number int64) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint(n.BaseURL, "/none/", number), nil)
}

func (n *noisy) unknownMethod(ctx context.Context, _ int64) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodDelete, n.BaseURL+"/logs", nil)
}

func (n *noisy) wrongPassword(ctx context.Context, _ int64) (*http.Request, error) {
	return n.wrongSignIn(ctx, n.ConsoleEmail)
}
