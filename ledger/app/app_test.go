package app_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/testenv"
)

// awaitChecker waits for the checker's first round, after which it
// checks new ranges.
func awaitChecker(t *testing.T, ledger *app.App) {
	t.Helper()
	testenv.Eventually(t, waitTimeout, func() error {
		if report := ledger.Report(); report.Rounds == 0 {
			return fmt.Errorf("report %+v", report)
		}
		return nil
	})
}

// Duplicates are charged once: a part produced again and a request
// repeated with its Idempotency-Key. A key reused for another body is
// never charged. An invalid record is parked and blocks none. Account
// state, marker, balance, events and the log agree to the byte.
func TestChargedOnce(t *testing.T) {
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	r.create("other", "scale")
	awaitChecker(t, ledger)

	plain := logs("acme", 100)
	parts := logs("acme", 50)
	parts.Parts = 2
	second := parts
	second.Part, second.First, second.Bytes = 2, 2, 60
	keyed := logs("acme", 200)
	keyed.Idempotency, keyed.Digest = contracttest.Digest("project+key"), contracttest.Digest("body")
	replay, reused := keyed, keyed
	replay.Batch, reused.Batch = uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
	reused.Digest, reused.Bytes = contracttest.Digest("another body"), 400

	r.Accept(plain, parts, second, keyed, plain, replay, reused, second, logs("other", 7))
	headers := logs("acme", 1).Headers()
	headers[contract.HeaderBytes] = "many"
	r.Publish(contract.TopicLogs, "acme-project:0", headers, nil)
	r.Accept(plain, replay, keyed, logs("acme", 150))

	r.awaitAccount("acme") // charges may count before their organization is known
	r.awaitAccount("other")
	accounts := r.awaitCounted()
	const used = 100 + 50 + 60 + 200 + 150
	if got := accounts["acme"]; got.Used != used || got.Quota != 1000 || got.State != contract.AccountActive || got.RequestsPerMinute != 60 || got.RetentionDays != 7 {
		t.Errorf("account %+v, want %d used", got, used)
	}
	if got := accounts["other"].Used; got != 7 {
		t.Errorf("other used %d, want 7", got)
	}
	token := r.token("acme", "billing:read")
	testenv.Eventually(t, waitTimeout, func() error {
		status, body := get(t, ledger, token, "/v1/organizations/acme/balance")
		if status != http.StatusOK || body["consumed"] != float64(used) || body["remaining"] != float64(1000-used) {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	if events := r.awaitEvents(1); len(events) != 1 || !strings.HasSuffix(events[0], "threshold/50") {
		t.Errorf("events %v", events)
	}
	r.verify()
	testenv.Eventually(t, waitTimeout, func() error {
		if report := ledger.Report(); report.Ranges == 0 || len(report.Violations) > 0 {
			return fmt.Errorf("report %+v", report)
		}
		return nil
	})
}

// An organization's logs may come before its creation: they are
// charged, and published with its account after it.
func TestLogsBeforeTheirOrganization(t *testing.T) {
	r := newRig(t)
	_, _ = r.start()
	r.Accept(logs("early", 300), logs("early", 250))
	if accounts := r.awaitCounted(); len(accounts) != 0 {
		t.Errorf("accounts %v before anything is known of them", accounts)
	}
	r.create("early", "indie")
	r.awaitAccount("early")
	r.Accept(logs("early", 250))
	got := r.awaitCounted()["early"]
	if got.Used != 800 || got.Quota != 1000 {
		t.Errorf("account %+v", got)
	}
	events := r.awaitEvents(2)
	if !contains(events, "threshold/50") || !contains(events, "threshold/80") || len(events) != 2 {
		t.Errorf("events %v", events)
	}
	r.verify()
}

// Usage beyond the quota exhausts the account, and is not counted as
// used. Each threshold is announced once.
func TestExhausted(t *testing.T) {
	r := newRig(t)
	_, _ = r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	for range 12 {
		r.Accept(logs("acme", 99))
	}
	got := r.awaitCounted()["acme"]
	if got.Used != 1000 || got.State != contract.AccountExhausted || got.NextQuota != 1000 {
		t.Errorf("account %+v", got)
	}
	if events := r.awaitEvents(4); len(events) != 4 {
		t.Errorf("events %v, want three thresholds and one exhaustion", events)
	}
	r.verify()
}

// Two ledgers share the work. One stops midway, another starts: every
// byte is charged once, and one ledger at a time publishes.
func TestTwoLedgers(t *testing.T) {
	r := newRig(t)
	_, stopFirst := r.start()
	_, _ = r.start()
	want := map[string]int64{}
	feed := func(n int) {
		for i := range n {
			organization, bytes := fmt.Sprint("org", i%5), int64(i%7)
			accepted := logs(organization, bytes)
			r.Accept(accepted, accepted)
			want[organization] += bytes
		}
	}
	for i := range 5 {
		r.create(fmt.Sprint("org", i), "scale")
	}
	feed(100)
	stopFirst()
	feed(100)
	_, _ = r.start()
	feed(100)
	for organization := range want {
		r.awaitAccount(organization) // charges may count before their organization is known
	}
	accounts := r.awaitCounted()
	for organization, used := range want {
		if got := accounts[organization].Used; got != used {
			t.Errorf("%s used %d, want %d", organization, got, used)
		}
	}
	r.verify()
}

// Charges that a stopped ledger has not published are published by the
// next, without a new event.
func TestRestartPublishesWhatIsDue(t *testing.T) {
	r := newRig(t)
	_, stop := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	r.Accept(logs("acme", 10))
	stop()
	r.Accept(logs("acme", 20))
	_, _ = r.start()
	if got := r.awaitCounted()["acme"]; got.Used != 30 {
		t.Errorf("account %+v", got)
	}
	r.verify()
}

// An account that changes with each commit is published at a limited
// pace, with all changes so far and finally the last.
func TestAccountsArePaced(t *testing.T) {
	r := newRig(t)
	var published int
	r.seen = func(contract.Account) { published++ }
	_, _ = r.start()
	r.create("acme", "scale")
	r.awaitAccount("acme")
	begun, sent := time.Now(), 0
	for ; time.Since(begun) < 500*time.Millisecond; sent++ {
		r.Accept(logs("acme", 1))
	}
	if got := r.awaitCounted()["acme"]; got.Used != int64(sent) {
		t.Errorf("after %d bytes: %+v", sent, got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := int(time.Since(begun)/(100*time.Millisecond)) + 2 // the first one, and that of the creation
	if t.Logf("%d commits at most, %d states", sent, published); published > most {
		t.Errorf("%d states of one account are published in %s, want %d at most", published, time.Since(begun), most)
	}
}

// Changed terms of a tier reach every account after a restart without a
// new event.
func TestNewTermsAfterRestart(t *testing.T) {
	r := newRig(t)
	_, stop := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	stop()
	r.config.TierIndieBytes, r.config.TierIndieRequests, r.config.TierIndieRetention = 5000, 7, 14
	_, _ = r.start()
	testenv.Eventually(t, waitTimeout, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if got := r.accounts["acme"]; got.RequestsPerMinute != 7 || got.RetentionDays != 14 || got.NextQuota != 5000 || got.Quota != 1000 {
			return fmt.Errorf("account %+v", got)
		}
		return nil
	})
}

// Service tokens with the scope read the books of their organization,
// or of all for the installation. For all others the organization does not exist.
func TestWhoMayRead(t *testing.T) {
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	r.create("evil", "indie")
	r.Accept(logs("acme", 10), logs("acme", 20))
	own, operator := r.token("acme", "billing:read"), r.token("", "billing:read")
	foreign, scopeless := r.token("evil", "billing:read"), r.token("acme", "billing:write")
	r.awaitCounted()
	r.awaitAccount("evil")
	awaitReady(t, ledger)
	for _, token := range []string{own, operator, foreign} { // from here on all are loaded
		testenv.Eventually(t, waitTimeout, func() error {
			if status, _ := get(t, ledger, token, "/v1/organizations/nobody/balance"); status != http.StatusNotFound {
				return errNot
			}
			return nil
		})
	}
	tests := []struct {
		name, token, path string
		status            int
		code              string
	}{
		{"own", own, "acme/balance", 200, ""},
		{"operator", operator, "acme/balance", 200, ""},
		{"own entries", own, "acme/entries", 200, ""},
		{"own usage", own, "acme/usage", 200, ""},
		{"foreign", foreign, "acme/balance", 404, "not_found"},
		{"foreign entries", foreign, "acme/entries", 404, "not_found"},
		{"foreign usage", foreign, "acme/usage", 404, "not_found"},
		{"unknown", operator, "nobody/balance", 404, "not_found"},
		{"unknown entries", operator, "nobody/entries", 404, "not_found"},
		{"all at once", operator, "*/balance", 404, "not_found"},
		{"without the scope", scopeless, "acme/balance", 403, "forbidden"},
		{"without a token", "", "acme/balance", 401, "missing_token"},
		{"with an unknown token", "weirsvc_" + strings.Repeat("0", 48), "acme/balance", 401, "invalid_token"},
		{"with a time that is none", own, "acme/balance?at=yesterday", 400, "invalid_request"},
		{"with a time that is not UTC", own, "acme/balance?at=2026-11-20T14:00:00%2B01:00", 400, "invalid_request"},
		{"with a parameter that balances lack", own, "acme/balance?from=2026-11-20T14:00:00Z", 400, "invalid_request"},
		{"with a filter that entries lack", own, "acme/entries?environment=prod", 400, "invalid_request"},
		{"with a filter that usage lacks", own, "acme/usage?level=error", 400, "invalid_request"},
		{"before it existed", own, "acme/balance?at=2026-01-01T00:00:00Z", 404, "not_found"},
		{"with a cursor that is none", own, "acme/entries?cursor=abc", 400, "invalid_cursor"},
		{"with a cursor beyond every entry", own, "acme/entries?cursor=" + unsigned(`{"p":1099511627776}`), 400, "invalid_cursor"},
		{"with a project that none can be", own, "acme/usage?project=%00", 400, "invalid_request"},
		{"with a cursor that none can be", own, "acme/usage?cursor=" + unsigned(`{"d":"2026-11-21T00:00:00Z","p":"\u0000"}`), 400, "invalid_cursor"},
		{"an organization that none can be", operator, "%00/balance", 404, "not_found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, body := get(t, ledger, test.token, "/v1/organizations/"+test.path)
			if status != test.status || (test.code != "" && body["code"] != test.code) {
				t.Errorf("%d %v", status, body)
			}
		})
	}
	_, known := get(t, ledger, foreign, "/v1/organizations/acme/balance")
	_, unknown := get(t, ledger, foreign, "/v1/organizations/acne/balance")
	if strings.ReplaceAll(fmt.Sprint(known["detail"]), "acme", "") != strings.ReplaceAll(fmt.Sprint(unknown["detail"]), "acne", "") {
		t.Errorf("a foreign organization shows: %v, %v", known, unknown)
	}
}

// Balance, entries and usage agree, and the balance has the positions
// of the log that it counts.
func TestReadingBooks(t *testing.T) {
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	r.Accept(logs("acme", 10), logs("acme", 20), logs("acme", 30))
	token := r.token("acme", "billing:read")
	r.awaitCounted()
	r.awaitAccount("acme")
	awaitReady(t, ledger)
	testenv.Eventually(t, waitTimeout, func() error {
		if status, body := get(t, ledger, token, "/v1/organizations/acme/balance"); status != 200 || body["consumed"] != 60.0 {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	_, balance := get(t, ledger, token, "/v1/organizations/acme/balance")
	positions := balance["as_of"].(map[string]any)["positions"].(map[string]any)
	for partition, end := range r.End() {
		if positions[fmt.Sprint(partition)] != float64(end) {
			t.Errorf("positions %v, want %v", positions, r.End())
		}
	}
	_, past := get(t, ledger, token, "/v1/organizations/acme/balance?at="+time.Now().UTC().Add(-30*time.Second).Format(time.RFC3339))
	if past["consumed"] != 0.0 || past["granted"] != 1000.0 {
		t.Errorf("half a minute ago: %v", past)
	}
	if charged, pages := r.chargedByEntries(ledger, token); charged != 60 || pages < 2 {
		t.Errorf("entries charge %v on %d pages", charged, pages)
	}
	_, usage := get(t, ledger, token, "/v1/organizations/acme/usage")
	if day := usage["items"].([]any)[0].(map[string]any); day["bytes"] != 60.0 || day["entries"] != 6.0 {
		t.Errorf("usage %v", usage)
	}
	if status, document := get(t, ledger, "", "/v1/ledger/openapi.json"); status != 200 || document["openapi"] != "3.1.0" {
		t.Errorf("openapi: %d", status)
	}
}

// unsigned returns a cursor without a valid signature.
func unsigned(position string) string { return base64.RawURLEncoding.EncodeToString([]byte(position)) }
