package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/testenv"
)

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
	testenv.Eventually(t, waitTimeout, func() error {
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
	testenv.Eventually(r.t, waitTimeout, func() error {
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
	r.verify()
}
