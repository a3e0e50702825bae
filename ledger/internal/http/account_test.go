package http_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/identity"
)

// Operators list the accounts of all organizations, by state and part
// of their ids. A token of an organization can't.
func TestAccounts(t *testing.T) {
	operator := identity.ServiceTokenPrefix + strings.Repeat("b", 48)
	a := newAPIFor(t, map[string]string{token: "acme", operator: ""})
	for _, id := range []string{"acme", "beta", "evil", "idle"} {
		a.Start(t, id, ledger.Indie)
	}
	a.Book(t, a.NewCharge("acme", 30), a.NewCharge("evil", 100), a.NewCharge("nobody", 1))
	tally := ledger.Tally{Organization: "beta", Process: "run", Sequence: 1, At: a.Now().Add(-2 * time.Hour), Uses: []ledger.Use{
		{Organization: "beta", Hour: a.Now().Add(-2 * time.Hour).Truncate(time.Hour), Outcome: "rejected", Requests: 1}}}
	a.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return a.Booking.Count(ctx, tx, a.Now(), []ledger.Tally{tally})
	})
	for query, want := range map[string]string{
		"":                "acme active 30 2026-11-20T12:00:00Z, beta active 0 2026-11-20T10:00:00Z, evil exhausted 100 2026-11-20T12:00:00Z, idle active 0 <nil>",
		"state=exhausted": "evil exhausted 100 2026-11-20T12:00:00Z", "q=et": "beta active 0 2026-11-20T10:00:00Z", "state=suspended": "", "q=nobody": "",
	} {
		var got []string
		for cursor := ""; ; {
			request := httptest.NewRequest("GET", "/v1/accounts?limit=1&"+query+cursor, nil)
			request.Header.Set("Authorization", "Bearer "+operator)
			answer := httptest.NewRecorder()
			a.handler.ServeHTTP(answer, request)
			var page struct {
				Items      []map[string]any `json:"items"`
				NextCursor string           `json:"next_cursor"`
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
				t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
			}
			for _, item := range page.Items {
				got = append(got, fmt.Sprint(item["organization"], " ", item["state"], " ", item["consumed"], " ", item["last_activity"]))
			}
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %s, want %s", query, strings.Join(got, ", "), want)
		}
	}
	if status, _ := a.get(t, "/v1/accounts"); status != 403 {
		t.Errorf("with a token of an organization: %d", status)
	}
}
