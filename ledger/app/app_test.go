package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/testenv"
)

// awaitChecker waits for the checker's first round, after which it
// checks new ranges.
func awaitChecker(t *testing.T, ledger *app.App) {
	t.Helper()
	testenv.Eventually(t, func() error {
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
	testenv.Eventually(t, func() error {
		status, body := get(t, ledger, token, "/v1/organizations/acme/balance")
		if status != http.StatusOK || body["consumed"] != float64(used) || body["remaining"] != float64(1000-used) {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	if events := r.awaitEvents(1); len(events) != 1 || !strings.HasSuffix(events[0], "threshold/50") {
		t.Errorf("events %v", events)
	}
	verify(r.t, r.config)
	testenv.Eventually(t, func() error {
		if report := ledger.Report(); report.Ranges == 0 || len(report.Violations) > 0 {
			return fmt.Errorf("report %+v", report)
		}
		return nil
	})
}

// An organization's logs may come before its creation: they are
// charged, and published with its account after it. Usage beyond the quota
// exhausts the account, and is not counted as used. Each threshold is
// announced once.
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
	for range 12 {
		r.Accept(logs("early", 99))
	}
	got = r.awaitCounted()["early"]
	if got.Used != 1000 || got.State != contract.AccountExhausted || got.NextQuota != 1000 {
		t.Errorf("account %+v", got)
	}
	if events := r.awaitEvents(4); len(events) != 4 {
		t.Errorf("events %v, want three thresholds and one exhaustion", events)
	}
	verify(r.t, r.config)
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
	verify(r.t, r.config)
}

// Charges that a stopped ledger has not published are published by the
// next, and changed terms of a tier, without a new event.
func TestRestartPublishesWhatIsDue(t *testing.T) {
	r := newRig(t)
	_, stop := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	r.Accept(logs("acme", 10))
	stop()
	r.config.TierIndieBytes, r.config.TierIndieRequests, r.config.TierIndieRetention = 5000, 7, 14
	r.Accept(logs("acme", 20))
	_, _ = r.start()
	if got := r.awaitCounted()["acme"]; got.Used != 30 {
		t.Errorf("account %+v", got)
	}
	verify(r.t, r.config)
	r.awaitState("new terms", func(a contract.Account) bool {
		return a.RequestsPerMinute == 7 && a.RetentionDays == 14 && a.NextQuota == 5000 && a.Quota == 1000
	})
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

// Clients wait for what they sent.
func TestWaits(t *testing.T) {
	r, ledger, token := billed(t)
	t.Run("WhatTheLogDoesNotHave", func(t *testing.T) { testWhatTheLogDoesNotHaveIsNotAwaited(t, ledger, token) })
	t.Run("OwnWrites", func(t *testing.T) { testOwnWritesAreFound(t, r, ledger, token) })
	t.Run("ABatch", func(t *testing.T) { testABatchIsWaitedFor(t, r, ledger, token) })
}

// A client that waits finds everything acknowledged before, and how far
// the log is booked and checked.
func testOwnWritesAreFound(t *testing.T, r *rig, ledger *app.App, token string) {
	const path = "/v1/organizations/acme/balance"
	for i := range 20 {
		r.Accept(logs("acme", 10))
		testenv.Eventually(t, func() error { // a busy machine may exceed the wait
			status, balance := get(t, ledger, token, path+"?wait=true")
			if status == http.StatusInternalServerError && balance["code"] == "unavailable" {
				return errors.New("not booked yet")
			}
			if status != http.StatusOK || balance["consumed"] != float64(10*(i+1)) {
				t.Fatalf("%d sent, and the balance is %d %v", i+1, status, balance)
			}
			return nil
		})
	}
	var through string
	for partition, end := range r.End() {
		through += fmt.Sprintf("%d:%d,", partition, end)
	}
	status, balance := get(t, ledger, token, path+"?min_offset="+through[:len(through)-1])
	if status != http.StatusOK || balance["verified_through"] == nil {
		t.Errorf("%d %v", status, balance)
	}
	testenv.Eventually(t, func() error {
		if _, balance = get(t, ledger, token, path); balance["as_of"].(map[string]any)["behind"] != 0.0 || balance["lag_ms"] != 0.0 {
			return fmt.Errorf("%v", balance)
		}
		return nil
	})
	then := "?at=" + time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano)
	if status, balance := get(t, ledger, token, path+then); status != http.StatusOK || balance["as_of"].(map[string]any)["behind"] != nil || balance["lag_ms"] != nil {
		t.Errorf("of then: %d %v", status, balance)
	}
	for _, query := range []string{"?wait=yes", "?batch=1", "?batch=%7B" + uuid.NewString() + "%7D", "?batch=urn:uuid:" + uuid.NewString(), "?min_offset=x", "?min_offset=1", "?min_offset=1:-2", "?min_offset=-1:2", "?min_offset=1:2,"} {
		if status, answer := get(t, ledger, token, path+query); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", query, status, answer)
		}
	}
}

// A client that waits for a batch learns whether it is charged to the
// organization, whatever others send.
func testABatchIsWaitedFor(t *testing.T, r *rig, ledger *app.App, token string) {
	const path = "/v1/organizations/acme/balance?batch="
	_, before := get(t, ledger, token, "/v1/organizations/acme/balance")
	consumed := before["consumed"].(float64) + 10
	sent := logs("acme", 10)
	r.Accept(sent)
	testenv.Eventually(t, func() error { // a busy machine may exceed the wait
		status, balance := get(t, ledger, token, path+sent.Batch)
		if status == http.StatusInternalServerError && balance["code"] == "unavailable" {
			return errors.New("not booked yet")
		}
		if status != http.StatusOK || balance["consumed"] != consumed || balance["batch_charged"] != true {
			t.Fatalf("the balance is %d %v", status, balance)
		}
		return nil
	})
	partial, foreign := logs("acme", 10), logs("other", 10)
	partial.Parts = 2
	r.Accept(partial, foreign)
	r.awaitCounted()
	for _, batch := range []string{partial.Batch, foreign.Batch, logs("acme", 10).Batch, uuid.NewString()} {
		status, balance := get(t, ledger, token, path+batch)
		if status != http.StatusOK || balance["batch_charged"] != false || balance["consumed"] != consumed {
			t.Errorf("batch %s: %d %v", batch, status, balance)
		}
	}
}

// Who waits for what the log does not have learns so at once.
func testWhatTheLogDoesNotHaveIsNotAwaited(t *testing.T, ledger *app.App, token string) {
	for _, beyond := range []string{"0:1000000", "1000:1"} {
		partition, _, _ := strings.Cut(beyond, ":")
		says := fmt.Sprintf("min_offset is %s, but partition %s of %s ends at 0.", beyond, partition, contract.TopicLogs)
		status, answer := get(t, ledger, token, "/v1/organizations/acme/balance?min_offset="+beyond)
		if detail, _ := answer["detail"].(string); status != http.StatusBadRequest || !strings.Contains(detail, says) {
			t.Errorf("%d %v, want 400 that says %q", status, answer, says)
		}
	}
}

// send requests a decision; key is the Idempotency-Key, empty for none.
func send(t testing.TB, ledger *app.App, token, method, path, key, body string) (int, map[string]any) {
	t.Helper()
	request := httptest.NewRequest(method, "/v1/organizations/"+path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	recorder := httptest.NewRecorder()
	openapitest.Handler(t, ledger.Handler()).ServeHTTP(recorder, request)
	answered, _ := io.ReadAll(recorder.Body)
	members := map[string]any{}
	if err := json.Unmarshal(answered, &members); err != nil {
		t.Fatalf("%s answered %d %s", path, recorder.Code, answered)
	}
	return recorder.Code, members
}

// billed returns a ledger with an organization on a tier of 1,000 bytes
// and a token with write scope.
func billed(t *testing.T) (r *rig, ledger *app.App, token string) {
	t.Helper()
	return billedBy(t, nil)
}

// billedBy is billed with a clock; nil: the system's.
func billedBy(t *testing.T, clock func() time.Time) (r *rig, ledger *app.App, token string) {
	t.Helper()
	r = newRig(t)
	r.config.Clock = clock
	ledger, r.stop = r.start()
	r.create("acme", "indie")
	token = r.token("acme", "billing:read", "billing:write")
	r.awaitAccount("acme")
	awaitReady(t, ledger)
	testenv.Eventually(t, func() error {
		if status, body := get(t, ledger, token, "/v1/organizations/acme/subscription"); status != http.StatusOK {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	return r, ledger, token
}

// awaitState waits until an account is published in a state.
func (r *rig) awaitState(what string, is func(contract.Account) bool) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if account := r.accounts["acme"]; !is(account) {
			return fmt.Errorf("%s: account %+v", what, account)
		}
		return nil
	})
}

// An organization subscribes, uses up its quota, upgrades, gets and
// loses a grant, is suspended and resumed: by the API, and as ingest
// and others consume it.
func TestBillingsStory(t *testing.T) {
	r, ledger, token := billed(t)
	r.Accept(logs("acme", 1000))
	r.awaitState("used up", func(a contract.Account) bool { return a.State == contract.AccountExhausted })

	status, plan := send(t, ledger, token, "PUT", "acme/subscription", "upgrade", `{"tier":"scale","effective":"now","requests_per_minute":77}`)
	if status != http.StatusOK || plan["tier"] != "scale" || plan["requests_per_minute"] != 77.0 || plan["state"] != "active" || plan["next"] != nil {
		t.Errorf("%d %v", status, plan)
	}
	r.awaitState("upgraded", func(a contract.Account) bool {
		return a.State == contract.AccountActive && a.Tier == "scale" && a.RequestsPerMinute == 77 && a.Quota > 1000
	})
	status, plan = send(t, ledger, token, "PUT", "acme/subscription", "", `{"tier":"indie","on_exhausted":"overage","overage_cap":500}`)
	if next, _ := plan["next"].(map[string]any); status != http.StatusOK || plan["tier"] != "scale" || next["tier"] != "indie" || next["on_exhausted"] != "overage" || next["overage_cap"] != 500.0 {
		t.Errorf("%d %v", status, plan)
	}
	r.awaitState("a downgrade to come", func(a contract.Account) bool {
		return a.NextQuota == 1000 && a.NextOverageCap == 500 && a.OverageCap == 0
	})

	status, moved := send(t, ledger, token, "PUT", "acme/subscription", "", `{"tier":"scale","requests_per_minute":77,"anchor_day":31}`)
	if status != http.StatusOK || moved["anchor_day"] != 1.0 || moved["next_anchor_day"] != 31.0 {
		t.Errorf("another anchor day: %d %v", status, moved)
	}
	r.awaitState("another anchor day to come", func(a contract.Account) bool { return a.AnchorDay == 31 && a.PeriodEnd.Day() == 1 })
	send(t, ledger, token, "PUT", "acme/subscription", "", `{"tier":"indie","on_exhausted":"overage","overage_cap":500,"anchor_day":1}`)

	_, before := get(t, ledger, token, "/v1/organizations/acme/balance")
	status, grant := send(t, ledger, token, "POST", "acme/grants", "gift", `{"amount":5000,"reason":"sorry","priority":1}`)
	if status != http.StatusCreated || grant["amount"] != 5000.0 || grant["remaining"] != 5000.0 || grant["state"] != "active" || grant["priority"] != 1.0 {
		t.Errorf("%d %v", status, grant)
	}
	r.Accept(logs("acme", 2000))
	r.awaitState("a grant in use", func(a contract.Account) bool { return a.Used == 3000 })
	_, list := get(t, ledger, token, "/v1/organizations/acme/grants")
	if first := list["items"].([]any)[0].(map[string]any); first["remaining"] != 3000.0 || first["consumed"] != 2000.0 {
		t.Errorf("grants %v", list)
	}
	if status, voided := send(t, ledger, token, "POST", fmt.Sprintf("acme/grants/%s/void", grant["id"]), "", ""); status != http.StatusOK || voided["voided"] != 3000.0 || voided["state"] != "voided" {
		t.Errorf("%d %v", status, voided)
	}
	status, adjustment := send(t, ledger, token, "POST", "acme/adjustments", "", `{"amount":-10,"reason":"counted too little"}`)
	if transfers, _ := adjustment["transfers"].([]any); status != http.StatusCreated || adjustment["amount"] != -10.0 || len(transfers) == 0 {
		t.Errorf("%d %v", status, adjustment)
	}
	_, after := get(t, ledger, token, "/v1/organizations/acme/balance")
	if after["remaining"] != before["remaining"].(float64)-10 || after["voided"] != 3000.0 ||
		after["granted"] != after["consumed"].(float64)+after["remaining"].(float64)+after["voided"].(float64) {
		t.Errorf("before %v, after %v", before, after)
	}

	for _, suspended := range []bool{true, false} {
		send(t, ledger, token, "PUT", "acme/subscription", "", fmt.Sprintf(`{"tier":"scale","requests_per_minute":77,"suspended":%t}`, suspended))
		r.awaitState("suspended or not", func(a contract.Account) bool { return (a.State == contract.AccountSuspended) == suspended })
	}
	events := r.awaitEvents(7)
	for _, part := range []string{"threshold/50", "threshold/80", "threshold/100", "/exhausted/", "/restored/", "/tier/", "/adjusted/"} {
		if !contains(events, part) {
			t.Errorf("events %v lack %s", events, part)
		}
	}
	if len(events) != 7 {
		t.Errorf("events %v", events)
	}
	verify(r.t, r.config)
}

// refused is a refusal by a replica of ingest with a quota.
func refused(organization, request string, quota int64) contract.QuotaRefused {
	now := time.Now().UTC()
	return contract.QuotaRefused{
		Organization: organization, Project: organization + "-project", APIKey: "key", Environment: "prod", RequestID: request, At: now, Bytes: 500,
		Remaining: 272, PeriodStart: calendar.PeriodAt(now, 1).Start, Quota: quota, Exhausts: true, Requests: 1,
	}
}

// A refusal by one replica of ingest exhausts the account for all,
// although something is left.
func TestARefusalExhaustsTheAccount(t *testing.T) {
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	r.create("other", "indie")
	r.awaitAccount("acme")
	r.awaitAccount("other")
	r.Accept(logs("acme", 728))
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "acme", refused("acme", "req_1", 1000))
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "acme", refused("acme", "req_1", 1000))  // again
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "other", refused("other", "req_2", 999)) // it had an outdated quota
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "nobody", refused("nobody", "req_3", 999))
	testenv.Eventually(t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if got := r.accounts["acme"]; got.State != contract.AccountExhausted || got.Used != 728 {
			return fmt.Errorf("account %+v", got)
		}
		return nil
	})
	if events := r.awaitEvents(2); len(events) != 2 || !contains(events, "exhausted/req_1") {
		t.Errorf("events %v", events)
	}
	token := r.token("acme", "billing:read")
	testenv.Eventually(t, func() error {
		if status, body := get(t, ledger, token, "/v1/organizations/acme/balance"); status != http.StatusOK || body["state"] != contract.AccountExhausted || body["remaining"] != 272.0 {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	if got := r.awaitCounted()["other"]; got.State != contract.AccountActive {
		t.Errorf("what a stale replica refused: %+v", got)
	}
	verify(r.t, r.config)
}
