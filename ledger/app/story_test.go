package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// A period as in docs/billing.md: subscription, use, exhaustion,
// upgrade, the period's end, its statement, an adjustment, and all of
// it as CSV.
func TestAPeriodOfBilling(t *testing.T) {
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	r, ledger, token := billedBy(t, clock)
	const of = "/v1/organizations/acme/"

	r.Accept(logs("acme", 600))
	if _, balance := get(t, ledger, token, of+"balance?wait=true"); balance["remaining"] != 400.0 || balance["state"] != "active" {
		t.Errorf("used: %v", balance)
	}
	if _, dryRun := send(t, ledger, token, "POST", "acme/dry-run", "", `{"bytes":400}`); dryRun["accepted"] != true || dryRun["exhausts"] != true {
		t.Errorf("tried: %v", dryRun)
	}
	r.Accept(logs("acme", 400))
	_, balance := get(t, ledger, token, of+"balance?wait=true")
	if balance["state"] != "exhausted" {
		t.Errorf("exhausted: %v", balance)
	}

	period := calendar.PeriodAt(clock(), 1)
	refused := contract.QuotaRefused{Organization: "acme", Project: "acme-project", APIKey: "key", RequestID: "req_1", At: clock(), Bytes: 70, Quota: 1000,
		PeriodStart: period.Start, Requests: 1}
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "acme", refused)
	testenv.Eventually(t, func() error {
		_, why := get(t, ledger, token, of+"refusals")
		items, _ := why["items"].([]any)
		if len(items) != 1 || items[0].(map[string]any)["crossed_by"] == nil || items[0].(map[string]any)["ended_by"] == nil {
			return fmt.Errorf("why: %v", why)
		}
		return nil
	})

	const larger = `{"tier":"indie","quota":1000000}`
	if _, preview := send(t, ledger, token, "POST", "acme/simulation", "", larger); preview["after"].(map[string]any)["remaining"].(float64) < 1 {
		t.Errorf("previewed: %v", preview)
	}
	for range 2 {
		if status, plan := send(t, ledger, token, "PUT", "acme/subscription", "upgrade", larger); status != http.StatusOK || plan["state"] != "active" {
			t.Errorf("upgraded: %d %v", status, plan)
		}
	}

	ahead.Store(int64(time.Until(period.End.Add(2 * time.Minute))))
	statement := awaitStatement(t, ledger, token)
	if statement["consumed"] != 1000.0 || statement["overage"] != 0.0 || statement["closing"] != 0.0 || statement["allowance"] != 1000.0 {
		t.Errorf("statement: %v", statement)
	}
	adjustment := fmt.Sprintf(`{"amount":250,"reason":"sent twice by our agent","period":%q}`, period.Start.Format(time.RFC3339))
	for range 2 {
		if status, made := send(t, ledger, token, "POST", "acme/adjustments", "credit", adjustment); status != http.StatusCreated || made["of_period"] == nil {
			t.Errorf("adjusted: %d %v", status, made)
		}
	}
	if csv := table(t, ledger, token, of+"statements/1"); strings.Count(csv, ",charge,") != 1 || !strings.Contains(csv, "1,consumed,,,,,,,,1000\n") {
		t.Errorf("as CSV:\n%s", csv)
	}
	for _, part := range []string{"threshold/50", "threshold/80", "threshold/100", "/exhausted/", "/restored/", "/closed", "/statement", "/adjusted/"} {
		events := r.awaitEvents(8)
		if n := strings.Count(strings.Join(events, " "), part); n != 1 {
			t.Errorf("%d events are %s: %v", n, part, events)
		}
	}
	verify(r.t, r.config)
	r.rebuild()
}

// awaitStatement waits for the first statement of acme.
func awaitStatement(t *testing.T, ledger *app.App, token string) (statement map[string]any) {
	t.Helper()
	testenv.Eventually(t, func() error {
		status, found := get(t, ledger, token, "/v1/organizations/acme/statements/1")
		if statement = found; status != http.StatusOK {
			return fmt.Errorf("%d %v", status, found)
		}
		return nil
	})
	return statement
}

// table reads a path as CSV.
func table(t *testing.T, ledger *app.App, token, path string) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/csv")
	recorder := httptest.NewRecorder()
	ledger.Handler().ServeHTTP(recorder, request)
	text, err := io.ReadAll(recorder.Body)
	if err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%d %s (%v)", recorder.Code, text, err)
	}
	return string(text)
}

// A test organization goes through a year, as in
// docs/billing.md: charges, exhaustion, upgrade, budget, periods closed
// on the test's clock, statements, an adjustment, CSV. All of it is
// marked as a test, no other organization is affected, and all invariants hold.
func TestAYearOfATest(t *testing.T) {
	r, ledger, token := billed(t)
	const of, clock = "/v1/organizations/acme/", "acme/test-clock"
	period := calendar.PeriodAt(time.Now(), 1)
	at := func(instant time.Time) string { return fmt.Sprintf(`{"at":%q}`, instant.Format(time.RFC3339)) }
	ask := func(method, path, key, body string, status int) map[string]any {
		t.Helper()
		answered, answer := send(t, ledger, token, method, path, key, body)
		if answered != status {
			t.Fatalf("%s %s %s: %d %v", method, path, body, answered, answer)
		}
		return answer
	}
	ask("POST", clock+"/use", "", `{"bytes":1}`, http.StatusBadRequest) // it is no test yet
	if begun := ask("PUT", clock, "begin", `{}`, http.StatusOK); begun["test"] != true {
		t.Errorf("begun: %v", begun)
	}
	r.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, "acme", contract.ProjectCreated{Organization: "acme", Project: "shop", Name: "Shop"})
	key := "key_" + strings.Repeat("0a", 16)
	first := fmt.Sprintf(`{"bytes":900,"entries":7,"project":"shop","key":%q,"environment":"prod"}`, key)
	testenv.Eventually(t, func() error {
		if status, used := send(t, ledger, token, "POST", clock+"/use", "first", first); status != http.StatusCreated {
			return fmt.Errorf("%d %v", status, used)
		}
		return nil
	})
	for range 2 { // none has an effect
		if used := ask("POST", clock+"/use", "first", first, http.StatusCreated); used["accepted"] != true ||
			used["remaining"] != 100.0 {
			t.Errorf("used: %v", used)
		}
	}
	refused := ask("POST", clock+"/use", "", `{"bytes":200,"project":"shop"}`, http.StatusCreated)
	_, why := get(t, ledger, token, of+"refusals?to=2100-01-01T00:00:00Z")
	if items, _ := why["items"].([]any); refused["rule"] != "quota" || len(items) != 1 || items[0].(map[string]any)["request_id"] != refused["id"] ||
		items[0].(map[string]any)["ended_by"] == nil {
		t.Errorf("refused: %v, why: %v", refused, why)
	}
	if upgraded := ask("PUT", "acme/subscription", "", `{"tier":"indie","quota":1000000}`, http.StatusOK); upgraded["state"] != "active" {
		t.Errorf("upgraded: %v", upgraded)
	}
	ask("PUT", "acme/budgets", "", fmt.Sprintf(`[{"key":%q,"bytes":905}]`, key), http.StatusOK)
	if beyond := ask("POST", clock+"/use", "", fmt.Sprintf(`{"bytes":6,"key":%q}`, key), http.StatusCreated); beyond["rule"] != "budget" {
		t.Errorf("beyond the budget: %v", beyond)
	}

	year := period.Start.AddDate(1, 0, 0)
	ask("PUT", clock, "", at(year), http.StatusOK)
	ask("PUT", clock, "", at(period.End), http.StatusBadRequest) // it never goes back
	if _, balance := get(t, ledger, token, of+"balance"); balance["test"] != true || balance["remaining"] != 1e6 || balance["state"] != "active" {
		t.Errorf("a year later: %v", balance)
	}
	_, statements := get(t, ledger, token, of+"statements")
	items, _ := statements["items"].([]any)
	if len(items) != 12 || items[11].(map[string]any)["consumed"] != 900.0 || items[11].(map[string]any)["test"] != true || items[0].(map[string]any)["expired"] != 1e6 {
		t.Errorf("%d statements: %v", len(items), items)
	}
	ask("POST", "acme/adjustments", "", fmt.Sprintf(`{"amount":250,"reason":"sent twice","period":%q}`, period.Start.Format(time.RFC3339)), http.StatusCreated)
	if csv := table(t, ledger, token, of+"statements/1"); !strings.Contains(csv, "1,test,") || strings.Count(csv, ",charge,") != 1 {
		t.Errorf("as CSV:\n%s", csv)
	}
	for _, part := range []string{"threshold/50", "threshold/80", "/exhausted/", "/restored/", "budget/key:" + key + "/", "/adjusted/"} {
		testenv.Eventually(t, func() error {
			if events := r.awaitEvents(12); !contains(events, part) {
				return fmt.Errorf("no %s in %v", part, events)
			}
			return nil
		})
	}
	testenv.Eventually(t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if account := r.accounts["acme"]; account.State != contract.AccountSuspended {
			return fmt.Errorf("published as %+v", account)
		}
		return nil
	})
	verify(r.t, r.config)
	r.rebuild()
}

// The check against the log finds a range with other bytes, a missing
// one, a lost posting, and a changed balance.
func TestVerifyFinds(t *testing.T) {
	r := newRig(t)
	process, stop := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	for range 5 {
		r.Accept(logs("acme", 10), logs("acme", 20), logs("acme", 30), logs("acme", 40))
		r.awaitCounted()
	}
	token := r.token("acme", "billing:read")
	testenv.Eventually(t, func() error {
		if status, body := get(t, process, token, "/v1/organizations/acme/verification"); status != http.StatusOK || body["sound"] != true {
			return fmt.Errorf("it answers %d %v", status, body)
		}
		return nil
	})
	if status, body := get(t, process, token, "/v1/organizations/acme/chain"); status != http.StatusOK || body["next_cursor"] != nil {
		t.Errorf("the chain is answered %d %v", status, body)
	}
	stop()
	verify(r.t, r.config)
	tests := []struct{ invariant, tamper string }{
		{ledger.LedgerIsLog, `UPDATE ranges SET checksum = checksum + 1 WHERE first_offset = 0`},
		{ledger.LedgerIsLog, `UPDATE ranges SET checksum = checksum - 1, bytes = bytes + 1 WHERE first_offset = 0 AND bytes > 0`},
		// The last range of a partition is never joined to those before it.
		{ledger.RangesFollow, `UPDATE ranges r SET next_offset = next_offset + 1
			WHERE EXISTS (SELECT FROM ranges l WHERE l.partition = r.partition AND l.first_offset > r.first_offset)`},
		{ledger.RangeIsTransfers, `DELETE FROM transfers WHERE ctid = (SELECT min(ctid) FROM transfers WHERE reason = 2)`},
		{ledger.BalanceIsTransfers, `UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE consumed > 0`},
	}
	for _, test := range tests {
		t.Run(test.invariant, func(t *testing.T) {
			tampered := &rig{t: t, config: r.config}
			tampered.tamper(test.tamper)
			violations, err := app.Verify(t.Context(), r.config)
			testenv.Must(t, err)
			for _, v := range violations {
				if v.Invariant == test.invariant {
					return
				}
			}
			t.Errorf("found only %v", violations)
		})
	}
}

func (r *rig) tamper(statement string) {
	r.t.Helper()
	pool, err := pg.Open(r.t.Context(), r.owning().DatabaseURL.Reveal(), postgres.Schema)
	testenv.Must(r.t, err)
	defer pool.Close()
	err = pg.InTxAsSystem(r.t.Context(), pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(r.t.Context(), statement)
		if err == nil && tag.RowsAffected() == 0 {
			r.t.Errorf("%s changed nothing", statement)
		}
		return err
	})
	testenv.Must(r.t, err)
}

// Account states that the topic has lost are published again: at a
// start, whether the topic lost everything or has an older state; and
// while the ledger runs, once the log gives an offset again.
func TestLostAccountsAreRepublished(t *testing.T) {
	r := newRig(t)
	_, stop := r.start()
	r.create("acme", "indie")
	r.create("other", "scale")
	r.Accept(logs("acme", 100))
	r.awaitAccount("acme")
	r.awaitAccount("other")
	r.awaitCounted()
	older := r.awaitOnTopic("other", "acme")
	r.Accept(logs("acme", 900))
	r.awaitCounted()
	wanted := r.awaitOnTopic("other", "acme")
	if wanted["acme"].State != contract.AccountExhausted || older["acme"].State != contract.AccountActive {
		t.Fatalf("acme is %+v, before %+v", wanted["acme"], older["acme"])
	}
	stop()
	r.mu.Lock()
	r.loses = true
	r.mu.Unlock()

	r.PublishEvent(contract.TopicAccounts, contract.TypeAccountChanged, "acme", older["acme"])
	r.PublishEvent(contract.TopicAccounts, contract.TypeAccountChanged, unreadable, "not an account")
	_, stop = r.start()
	r.awaitStates(wanted)
	stop()

	r.recreate()
	_, _ = r.start()
	r.awaitStates(wanted)

	r.recreate()
	r.Accept(logs("other", 5))
	testenv.Eventually(t, func() error {
		if now := r.onTopic(); now["other"].Used != 5 || now["acme"].State != contract.AccountExhausted {
			return fmt.Errorf("on the topic: %+v", now)
		}
		return nil
	})
}

// recreate has weir.accounts.v1 lose everything.
func (r *rig) recreate() {
	r.t.Helper()
	topics := contract.Topics(partitions, 0)
	i := slices.IndexFunc(topics, func(topic contract.Topic) bool { return topic.Name == contract.TopicAccounts })
	bustest.ReplaceTopic(r.t, r.config.Brokers, contract.TopicAccounts, 1, topics[i].Config)
}

// unreadable is the key of a record that is no account: it keeps nothing
// from being published.
const unreadable = "unreadable"

// onTopic returns the last state of each account on the topic.
func (r *rig) onTopic() map[string]contract.Account {
	r.t.Helper()
	last := map[string]contract.Account{}
	for _, record := range bustest.ReadAll(r.t, r.config.Brokers, contract.TopicAccounts) {
		if record.Header(contract.HeaderType) == contract.TypeAccountChanged && string(record.Key) != unreadable {
			var account contract.Account
			testenv.Must(r.t, json.Unmarshal(record.Value, &account))
			last[account.Organization] = account
		}
	}
	return last
}

func (r *rig) awaitOnTopic(organizations ...string) (found map[string]contract.Account) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		found = r.onTopic()
		for _, organization := range organizations {
			if _, there := found[organization]; !there {
				return fmt.Errorf("there is no account %s", organization)
			}
		}
		return nil
	})
	return found
}

// awaitStates waits until the topic's accounts say what they said before.
func (r *rig) awaitStates(wanted map[string]contract.Account) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		found := r.onTopic()
		for organization, before := range wanted {
			now := found[organization]
			if now.State != before.State || now.Used != before.Used || now.Quota != before.Quota || now.Version < before.Version {
				return fmt.Errorf("%s is %+v, before %+v", organization, now, before)
			}
		}
		return nil
	})
}
