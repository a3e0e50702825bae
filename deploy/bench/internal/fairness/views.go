package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Stored groups: within one budget, and similar enough to be compared.
const (
	storedGroups  = 800
	groupsPerBody = 100
	groupsToRead  = 100
)

// storeGroups sends errors whose kinds and stacks differ in a word, and
// waits until they have groups.
func storeGroups(ctx context.Context, n *noisy) error {
	var bodies [][]byte
	for first := range int64(storedGroups / groupsPerBody) {
		bodies = append(bodies, newErrors(groupsPerBody, first*groupsPerBody, similarStack))
	}
	if err := n.store(ctx, bodies); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if groups, err := n.api.ErrorGroups(ctx, n.Tenant.Key, n.Tenant.Project); err != nil || len(groups) >= groupsToRead {
			return err
		}
		lifecycle.Pause(ctx, 100*time.Millisecond)
	}
	return ctx.Err()
}

// similarStack writes a stack of 60 frames, one of them the kind's own.
func similarStack(to *bytes.Buffer, kind string) {
	fmt.Fprintf(to, `,"stack_trace":["at %s (/srv/shop/src/cart.js:1:7)"`, kind)
	for i := range int64(60) {
		fmt.Fprintf(to, `,"at step%s (/srv/shop/src/%s.js:%d:7)"`, letters(i), letters(i), i+1)
	}
	to.WriteByte(']')
}

// compareGroups requests groups, and those similar to them.
func compareGroups(ctx context.Context, n *noisy) error {
	groups, err := n.api.ErrorGroups(ctx, n.Tenant.Key, n.Tenant.Project)
	if err != nil {
		return err
	}
	if len(groups) == 0 {
		return errors.New("there are no groups to read")
	}
	paths := []string{"", "/similar"}
	return repeat(ctx, 32, func(worker int) error {
		return n.get(ctx, "/error-groups/"+groups[worker%len(groups)].ID+paths[worker%len(paths)])
	})
}

// readBills requests all that the ledger computes for an answer.
func readBills(ctx context.Context, n *noisy) error {
	since := "&from=" + time.Now().UTC().Add(-24*time.Hour).Format(time.RFC3339)
	asks := []struct{ method, path, body string }{
		{http.MethodGet, "/verification", ""}, {http.MethodGet, "/statements?limit=100", ""}, {http.MethodGet, "/forecast", ""},
		{http.MethodPost, "/dry-run", `{"bytes":1000}`}, {http.MethodPost, "/simulation", `{"tier":"scale"}`},
		{http.MethodGet, "/grants", ""}, {http.MethodGet, "/entries?reason=charged&limit=100" + since, ""}, {http.MethodGet, "/refusals?limit=100" + since, ""},
	}
	return repeat(ctx, 32, func(worker int) error {
		ask := asks[worker%len(asks)]
		header := http.Header{"Authorization": {"Bearer " + n.Tenant.Billing}, "Content-Type": {"application/json"}}
		return n.ask(ctx, ask.method, n.BaseURL+"/organizations/"+n.Tenant.Organization+ask.path, header, []byte(ask.body))
	})
}

// readPages reads the pages of the console.
func readPages(ctx context.Context, n *noisy) error {
	browser, err := n.signedIn(ctx)
	if err != nil {
		return err
	}
	pages := []string{"/usage", "/usage/refusals", "/usage/plan", "/usage/statements", "/errors", "/logs?q=nothing", "/settings", "/settings/projects"}
	return repeat(ctx, 32, func(worker int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.ConsoleURL+pages[worker%len(pages)], http.NoBody)
		if err != nil {
			return err
		}
		return n.send(ctx, browser, r)
	})
}
