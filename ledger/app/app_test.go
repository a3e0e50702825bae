package app_test

import (
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
	r.verify()
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
