package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/console"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// The page shows the period and transfers of the member's organization, if any.
func TestUsagePage(t *testing.T) {
	l, session := ledgertest.New(t), identity.SessionPrefix+strings.Repeat("a", 48)
	credentials := identity.NewCredentials(time.Now)
	issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, ID: "ses_1", Organization: "acme", Member: "mem_1",
		Scopes: []string{identity.RoleScope("billing")}, State: contract.CredentialActive, Version: 1})
	testenv.Must(t, credentials.Apply(contract.CredentialKey(session), issued))
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	console.Mount(router, console.Config{Services: l.Services, Directory: identity.NewDirectory(), Guard: guard})
	shows := func(query string, status int, texts ...string) {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, "/console/usage"+query, nil)
		request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
		answer := httptest.NewRecorder()
		routetest.Handler(router).ServeHTTP(answer, request)
		for _, text := range texts {
			if answer.Code != status || !strings.Contains(answer.Body.String(), text) {
				t.Errorf("%q: %d, want %d and %q:\n%s", query, answer.Code, status, text, answer.Body)
			}
		}
	}
	shows("", http.StatusOK, "being set up")
	shows("/plan", http.StatusOK, "being set up")
	shows("/overview", http.StatusOK, "being set up")
	l.Start(t, "acme", ledger.Indie)
	l.Start(t, "evil", ledger.Indie)
	l.Book(t, l.NewCharge("acme", 35), l.NewCharge("evil", 99))
	shows("", http.StatusOK, "(35%)", "Logs accepted", "Quota of the period", `<rect class="used" width="350"`)
	shows("/overview", http.StatusOK, `<span class="figure">65 B</span> left of 100 B`, "35 B used (35%), until", `href="/console/usage/plan"`)
	shows("", http.StatusOK, "Usage by day", `<rect class="series-0"`, "35 B", "/console/usage?by=project&amp;day=2026-11-20", "Show as a table")
	shows("?by=key&day=2026-11-20", http.StatusOK, "Usage by hour on 2026-11-20", "Back to the whole period", `<bdi>key</bdi>`, `aria-current="true">By key`)
	shows("?by=outcome", http.StatusOK, "1 requests", "accepted")
	shows("?day=2026-11-01", http.StatusOK, "Nothing was counted in this time.")
	shows("?by=colour", http.StatusBadRequest, "by")
	shows("?day=today", http.StatusBadRequest, "day")
	shows("/plan", http.StatusOK, "comparing changes nothing", `<option value="indie" selected>`)
	shows("/plan?tier=scale&on_exhausted=overage", http.StatusOK, "It would take effect at once", `<option value="scale" selected>`, `<option value="overage" selected>`, "Your past periods with this plan", "2026-11-01 to 2026-11-30")
	shows("/plan?tier=gold", http.StatusUnprocessableEntity, "The tier &#34;gold&#34; is unknown.")
	shows("", http.StatusOK, "(35%)", `href="/console/usage/plan"`)
	shows("/refusals", http.StatusOK, "No request was refused")
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{{Organization: "acme", Bytes: 70, Remaining: 65, Quota: 100, Exhausts: true, Requests: 3,
			PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Cause: ledger.Cause{Event: "req_1", At: l.Now(), Project: "project", Key: "key"}}})
		return err
	})
	shows("/refusals", http.StatusOK, "req_1", "It needed 70 B, but only 65 B of 100 B were left", "3 requests", "The last request was", "a grant of at least 5 B",
		"larger plan</a>: scale", `<bdi>project</bdi>`)
	shows("", http.StatusOK, ">exhausted<", "A request needed more than the 65 B that are left", "/console/usage/refusals")
	shows("/overview", http.StatusOK, ">exhausted<", "New logs are refused.")
	shows("/refusals?cursor=x", http.StatusBadRequest, "cursor")
	shows("?cursor=x", http.StatusBadRequest, "cursor")
	shows("/statements", http.StatusOK, "No period has closed yet")
	l.SetClock(time.Date(2026, 12, 1, 0, 1, 0, 0, time.UTC))
	if _, err := l.Plans.Advance(t.Context(), l.Pool, l.Now()); err != nil {
		t.Fatal(err)
	}
	shows("/statements", http.StatusOK, "Statement 3", "2026-11-01 to 2026-11-30", "/console/usage/statements/3")
	shows("/statements/3", http.StatusOK, "Quota of the plan", "of 100 B used (35%)", "Used by project and environment", `<bdi>project</bdi>`, "/console/usage/statements/3/csv")
	shows("/statements/3/csv", http.StatusOK, "statement,line,day,project", "3,charge,2026-11-20,project,,,,1,1,35")
	shows("/statements/1", http.StatusOK, "No logs were accepted in this period.")
	shows("/statements/4", http.StatusNotFound, "There is no statement")
	shows("/statements/last", http.StatusNotFound, "There is no statement")
	for day := range 3 {
		l.SetClock(time.Date(2026, 12, 7+day, 12, 0, 0, 0, time.UTC))
		l.Book(t, l.NewCharge("acme", 10))
	}
	l.Pass(24 * time.Hour) // 65 used in 20 days since 20 November, 70 left for 21
	shows("", http.StatusOK, "At this rate the quota lasts until the period ends, but it may be used up as soon as", "Based on the last 20 days")
	shows("/overview", http.StatusOK, "At this rate it lasts.")
	l.Book(t, l.NewCharge("acme", 40))
	shows("/overview", http.StatusOK, "At this rate it is used up on", ">2026-12-19<")
	shows("", http.StatusOK, "At this rate the quota is used up on 2026-12-19, between", "A larger plan or a grant prevents that.")
}
