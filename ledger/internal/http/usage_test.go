package http_test

import (
	"context"
	"encoding/csv"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
)

// getAs returns the body as text, in the accepted media type.
func (a *api) getAs(t *testing.T, path, accept string) (int, string, string) {
	t.Helper()
	request := httptest.NewRequest(nethttp.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	openapitest.Handler(t, a.handler).ServeHTTP(answer, request)
	return answer.Code, answer.Header().Get("Content-Type"), answer.Body.String()
}

// used books charges of two keys over three days of two months, and rejections.
func (a *api) used(t *testing.T) {
	t.Helper()
	a.Start(t, "acme", ledger.Scale)
	a.SetClock(ledgertest.November.AddDate(0, 0, -30)) // 21 October
	for day := range 3 {
		charge, other := a.NewCharge("acme", 10), a.NewCharge("acme", 5)
		other.Cause.Key, other.Environment, charge.Environment = "other", "dev", "prod"
		a.Book(t, charge, other)
		tally := ledger.Tally{Organization: "acme", Process: "run", Sequence: int64(day + 1), At: a.Now(), Uses: []ledger.Use{
			{Organization: "acme", Hour: a.Now().Truncate(time.Hour), Project: "project", Key: "key", Environment: "prod", Outcome: "rejected",
				Reason: "empty_batch", Requests: 2, Bytes: 22},
		}}
		a.As(t, func(ctx context.Context, tx pgx.Tx) error {
			return a.Booking.Count(ctx, tx, a.Now(), []ledger.Tally{tally})
		})
		a.Pass(6 * 24 * time.Hour)
	}
}

// Usage is split by the requested dimensions and has the same sum at
// each level of time. Rejections show only by outcome.
func TestUsageBy(t *testing.T) {
	a := newAPI(t)
	a.used(t)
	for query, want := range map[string][]string{
		"":                    {"2026-11-02T12:00:00Z"[:10] + "T00:00:00Z project 2 15", "2026-10-27T00:00:00Z project 2 15", "2026-10-21T00:00:00Z project 2 15"},
		"bucket=month":        {"2026-11-01T00:00:00Z 2 15", "2026-10-01T00:00:00Z 4 30"},
		"bucket=month&by=key": {"2026-11-01T00:00:00Z other 1 5", "2026-11-01T00:00:00Z key 1 10", "2026-10-01T00:00:00Z other 2 10", "2026-10-01T00:00:00Z key 2 20"},
		"bucket=month&by=environment&to=2026-10-02T00:00:00Z":           {"2026-10-01T00:00:00Z prod 2 20", "2026-10-01T00:00:00Z dev 2 10"},
		"bucket=month&by=outcome,reason&from=2026-11-30T00:00:00Z":      {"2026-11-01T00:00:00Z rejected empty_batch 2 22", "2026-11-01T00:00:00Z accepted  2 15"},
		"bucket=hour&from=2026-11-02T00:00:00Z&by=key,project":          {"2026-11-02T12:00:00Z project other 1 5", "2026-11-02T12:00:00Z project key 1 10"},
		"bucket=hour&from=2026-11-02T12:59:59Z&to=2026-11-02T13:00:00Z": {"2026-11-02T12:00:00Z 2 15"},
		"bucket=hour&from=2026-11-02T13:00:00Z":                         nil,
		"bucket=day&project=none":                                       nil,
	} {
		var got []string
		for cursor := ""; ; {
			status, page := a.get(t, "/v1/organizations/acme/usage?limit=1&"+query+cursor)
			if status != 200 {
				t.Fatalf("%s: %d %v", query, status, page)
			}
			for _, item := range page["items"].([]any) {
				item := item.(map[string]any)
				line := fmt.Sprint(item["at"])
				for _, dimension := range []string{"project", "key", "environment", "outcome", "reason"} {
					if value, told := item[dimension]; told {
						line += fmt.Sprint(" ", value)
					}
				}
				got = append(got, fmt.Sprintf("%s %v %v", line, item["requests"], item["bytes"]))
			}
			next, more := page["next_cursor"].(string)
			if !more {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(next)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q:\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, query := range []string{"bucket=week", "by=colour", "by=project,,colour", "bucket="} {
		if status, _ := a.get(t, "/v1/organizations/acme/usage?"+query); status != 400 {
			t.Errorf("%s: %d", query, status)
		}
	}
	a.CheckSound(t)
}

// The first form of usage by day still works.
func TestUsageAsItWas(t *testing.T) {
	a := newAPI(t)
	a.used(t)
	_, page := a.get(t, "/v1/organizations/acme/usage?limit=1")
	item := page["items"].([]any)[0].(map[string]any)
	for member, want := range map[string]any{"day": "2026-11-02", "project": "project", "bytes": 15.0, "entries": 2.0, "errors": 0.0} {
		if item[member] != want {
			t.Errorf("%s is %v, want %v", member, item[member], want)
		}
	}
}

// A whole list is exported as CSV or lines, over as many pages as it
// takes, up to the requested limit.
func TestUsageExported(t *testing.T) {
	a := newAPI(t)
	a.used(t)
	var uses []ledger.Use
	for i := range 2500 {
		uses = append(uses, ledger.Use{Organization: "acme", Hour: ledgertest.November.Truncate(time.Hour), Key: fmt.Sprint("many_", i), Outcome: "rejected", Requests: 1})
	}
	tally := ledger.Tally{Organization: "acme", Process: "another", Sequence: 1, At: a.Now(), Uses: uses}
	a.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return a.Booking.Count(ctx, tx, a.Now(), []ledger.Tally{tally})
	})
	const path = "/v1/organizations/acme/usage?by=key,outcome&bucket=hour"
	status, mediaType, text := a.getAs(t, path, "text/csv")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || status != 200 || mediaType != "text/csv" || len(rows) != 1+2500+9 {
		t.Errorf("%d %s, %d rows, %v", status, mediaType, len(rows), err)
	}
	if got := strings.Join(rows[0], " "); got != "at key outcome requests entries bytes errors key_in_body" {
		t.Errorf("columns %s", got)
	}
	if got := strings.Join(rows[len(rows)-1], " "); got != "2026-10-21T12:00:00Z key accepted 1 1 10 0 0" {
		t.Errorf("the last row is %s", got)
	}
	status, mediaType, text = a.getAs(t, path+"&limit=3", "application/x-ndjson")
	if status != 200 || mediaType != "application/x-ndjson" || strings.Count(text, "\n") != 3 || !strings.HasPrefix(text, `{"at":"2026-11-20T12:00:00Z","key":"many_999","outcome":"rejected","requests":1,`) {
		t.Errorf("%d %s %s", status, mediaType, text)
	}
	if status, _, _ = a.getAs(t, strings.Replace(path, "acme", "evil", 1), "text/csv"); status != 404 {
		t.Errorf("of another organization: %d", status)
	}
}

// refusal returns a refusal of a request of acme, now.
func (a *api) refusal(request string, bytes, remaining int64, exhausts bool) ledger.Refusal {
	return ledger.Refusal{Organization: "acme", Environment: "prod", Bytes: bytes, Remaining: remaining, Quota: 100, Exhausts: exhausts, Requests: 1,
		PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Cause: ledger.Cause{Event: request, Source: ledger.FromOutcomes, At: a.Now(), Project: "project", Key: "key"}}
}

// A refusal names the request that crossed the limit, the usage by
// then, when it ends and the resolution.
func TestWhyARequestWasRefused(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	small, large := a.NewCharge("acme", 12), a.NewCharge("acme", 60)
	large.Cause.Key, large.Environment, small.Environment = "batch-job", "staging", "prod"
	a.Book(t, small, large)
	crossed := a.Pass(time.Hour)
	refuse := func(r ledger.Refusal) {
		a.As(t, func(ctx context.Context, tx pgx.Tx) error {
			_, err := a.Booking.Refuse(ctx, tx, a.Now(), []ledger.Refusal{r})
			return err
		})
	}
	refuse(a.refusal("req_1", 50, 28, true))
	a.Pass(time.Hour)
	refuse(a.refusal("req_2", 3, 28, true))
	suspended := a.refusal("req_3", 3, 28, false)
	suspended.Reason = "suspended"
	a.Pass(time.Hour)
	refuse(suspended)
	status, page := a.get(t, "/v1/organizations/acme/refusals")
	items, _ := page["items"].([]any)
	if status != 200 || len(items) != 3 {
		t.Fatalf("%d %v", status, page)
	}
	if item := items[0].(map[string]any); item["reason"] != "suspended" || item["crossed_by"] != nil || item["ends_at"] != nil {
		t.Errorf("while suspended: %v", item)
	}
	item := items[1].(map[string]any)
	crossing, resolution := item["crossed_by"].(map[string]any), item["ended_by"].(map[string]any)
	if item["request_id"] != "req_2" || item["key"] != "key" || item["bytes"] != 3.0 || item["remaining"] != 28.0 || item["ends_at"] != "2026-12-01T00:00:00Z" {
		t.Errorf("%v", item)
	}
	if crossing["request_id"] != "req_1" || crossing["at"] != crossed.Format(time.RFC3339) || crossing["bytes"] != 50.0 || crossing["batch"] != nil {
		t.Errorf("crossed by %v", crossing)
	}
	if fmt.Sprint(resolution) != "map[grant:1 tiers:[scale]]" {
		t.Errorf("ended by %v", resolution)
	}
	if got, want := usedBy(item), "project project 72, key batch-job 60, key key 12, environment staging 60, environment prod 12, hour 2026-11-20T12:00:00Z 72"; got != want {
		t.Errorf("used by %s, want %s", got, want)
	}
	status, page = a.get(t, "/v1/organizations/acme/refusals?limit=1&to="+crossed.Add(time.Minute).Format(time.RFC3339))
	if items := page["items"].([]any); status != 200 || len(items) != 1 || items[0].(map[string]any)["request_id"] != "req_1" || page["next_cursor"] != nil {
		t.Errorf("%d %v", status, page)
	}
}

// usedBy returns the usage listed by an explained refusal.
func usedBy(refusal map[string]any) string {
	var shares []string
	for _, share := range refusal["used_by"].([]any) {
		share := share.(map[string]any)
		shares = append(shares, fmt.Sprintf("%v %v %v", share["by"], share["id"], share["bytes"]))
	}
	return strings.Join(shares, ", ")
}

// Charges after the crossing, in the same hour, day or later, don't
// change its usage.
func TestWhyStaysAsItIs(t *testing.T) {
	a := newAPI(t)
	a.SetClock(ledgertest.November.Add(-36 * time.Hour))
	a.Start(t, "acme", ledger.Indie)
	book := func(bytes int64) {
		charge := a.NewCharge("acme", bytes)
		charge.Environment = "prod"
		a.Book(t, charge)
	}
	book(10)
	a.SetClock(ledgertest.November.Add(-2 * time.Hour))
	book(20)
	a.SetClock(ledgertest.November.Add(10 * time.Minute))
	book(30)
	a.Pass(time.Minute)
	a.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := a.Booking.Refuse(ctx, tx, a.Now(), []ledger.Refusal{a.refusal("req_1", 50, 40, true)})
		return err
	})
	if status, made := a.send(t, "PUT", "/v1/organizations/acme/subscription", `{"tier":"indie","quota":1000000}`); status != 200 {
		t.Fatalf("%d %v", status, made)
	}
	const exact, hours = "project project 60, key key 60, environment prod %d", "hour 2026-11-20T12:00:00Z 30, hour 2026-11-20T10:00:00Z 20, hour 2026-11-19T00:00:00Z 10"
	for _, step := range []struct {
		later       time.Duration
		environment int // the last hour counts whole
	}{{0, 60}, {time.Minute, 5060}, {time.Hour, 5060}, {24 * time.Hour, 5060}} {
		if a.Pass(step.later); step.later > 0 {
			book(5000)
		}
		_, page := a.get(t, "/v1/organizations/acme/refusals")
		if got, want := usedBy(page["items"].([]any)[0].(map[string]any)), fmt.Sprintf(exact+", ", step.environment)+hours; got != want {
			t.Errorf("%s later used by %s, want %s", step.later, got, want)
		}
	}
}

// An allowance used up exactly names the batch that did it.
func TestWhyAllIsUsedUp(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 40))
	a.Pass(time.Minute)
	last := a.NewCharge("acme", 60)
	last.Cause.Event = "018f-batch/1"
	a.Book(t, last)
	a.Pass(time.Minute)
	a.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := a.Booking.Refuse(ctx, tx, a.Now(), []ledger.Refusal{a.refusal("req_1", 50, 0, true)})
		return err
	})
	_, page := a.get(t, "/v1/organizations/acme/refusals")
	crossing, _ := page["items"].([]any)[0].(map[string]any)["crossed_by"].(map[string]any)
	if crossing["batch"] != "018f-batch" || crossing["bytes"] != 60.0 || crossing["request_id"] != nil {
		t.Errorf("crossed by %v", crossing)
	}
}

// An allowance that ended with a voided grant names no batch.
func TestWhyNothingIsLeftOfAGrant(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	given := a.GrantAcme(t, ledger.Grant{Amount: 50, Priority: ledger.PlanPriority + 1})
	a.Book(t, a.NewCharge("acme", 100))
	a.Pass(time.Minute)
	if status, made := a.send(t, "POST", "/v1/organizations/acme/grants/"+given.ID+"/void", `{}`); status != 200 {
		t.Fatalf("%d %v", status, made)
	}
	voided := a.Now()
	a.Pass(time.Minute)
	a.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := a.Booking.Refuse(ctx, tx, a.Now(), []ledger.Refusal{a.refusal("req_1", 10, 0, true)})
		return err
	})
	_, page := a.get(t, "/v1/organizations/acme/refusals")
	crossing, _ := page["items"].([]any)[0].(map[string]any)["crossed_by"].(map[string]any)
	if crossing["reason"] != "voided" || crossing["grant"] != given.ID || crossing["at"] != voided.Format(time.RFC3339) || crossing["bytes"] != 50.0 || crossing["batch"] != nil {
		t.Errorf("crossed by %v", crossing)
	}
}

// Entries are filtered, and exported whole as CSV and as lines over
// several pages.
func TestEntriesBy(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Scale)
	charges := make([]ledger.Charge, 1100)
	for i := range charges {
		charges[i] = a.NewCharge("acme", int64(1+i))
		charges[i].Cause.Project, charges[i].Cause.Key = fmt.Sprint("project", i%2), fmt.Sprint("key", i%5)
	}
	a.Book(t, charges...)
	const path = "/v1/organizations/acme/entries?from=2026-11-20T00:00:00Z"
	for filter, want := range map[string]int{
		"": 1100 + 1, "&reason=charged": 1100, "&reason=issued": 1, "&project=project1": 550, "&api_key=key3": 220, "&project=project1&api_key=key3&reason=charged": 110,
		"&project=other": 0, "&grant=none": 0, "&reason=charged&limit=7": 7,
	} {
		status, mediaType, text := a.getAs(t, path+filter, "text/csv")
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || status != 200 || mediaType != "text/csv" || len(rows) != 1+want || !slices.Contains(rows[0], "of_period") {
			t.Errorf("%q as CSV: %d %s, %d rows, want %d (%v)", filter, status, mediaType, len(rows), 1+want, err)
		}
		if status, _, text = a.getAs(t, path+filter, "application/x-ndjson"); status != 200 || strings.Count(text, "\n") != want {
			t.Errorf("%q as lines: %d, %d, want %d", filter, status, strings.Count(text, "\n"), want)
		}
	}
	if status, _, text := a.getAs(t, path+"&reason=charged&limit=1", "application/json"); status != 200 ||
		!strings.Contains(text, `"amount":1100`) || !strings.Contains(text, `"next_cursor":"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := a.getAs(t, path+"&reason=why", "application/json"); status != 400 || !strings.Contains(text, "?reason") {
		t.Errorf("an unknown reason: %d %s", status, text)
	}
	if status, _, _ := a.getAs(t, strings.Replace(path, "acme", "evil", 1), "text/csv"); status != 404 {
		t.Errorf("another's: %d", status)
	}
}
