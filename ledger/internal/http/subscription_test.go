package http_test

import (
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
)

// A subscription changes at once or at the end of the period; both
// states are shown.
func TestSubscription(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	if now := a.must(t, 200, "GET", "subscription", ""); now["tier"] != "indie" || now["quota"] != 100.0 || now["on_exhausted"] != "refuse" ||
		now["overage_cap"] != nil || now["next"] != nil || now["anchor_day"] != 1.0 {
		t.Errorf("before: %v", now)
	}
	larger := a.must(t, 200, "PUT", "subscription", `{"tier":"indie","quota":500,"requests_per_minute":7,"on_exhausted":"overage","overage_cap":50}`)
	if larger["quota"] != 500.0 || larger["requests_per_minute"] != 7.0 || larger["on_exhausted"] != "overage" || larger["overage_cap"] != 50.0 || larger["since"] != "2026-11-20T12:00:00Z" {
		t.Errorf("at once: %v", larger)
	}
	scheduled := a.must(t, 200, "PUT", "subscription", `{"tier":"indie","effective":"period_end","suspended":true,"anchor_day":7}`)
	next, _ := scheduled["next"].(map[string]any)
	if scheduled["quota"] != 500.0 || scheduled["state"] != "suspended" || scheduled["next_anchor_day"] != 7.0 || next["at"] != "2026-12-01T00:00:00Z" || next["quota"] != 100.0 {
		t.Errorf("at the end of the period: %v", scheduled)
	}
	if now := a.must(t, 200, "GET", "subscription", ""); now["suspended"] != true || now["next"] == nil {
		t.Errorf("after that: %v", now)
	}
	a.refuses(t, map[string]string{
		`PUT subscription {"tier":"none"}`:                          "/tier",
		`PUT subscription {"tier":"indie","on_exhausted":"x"}`:      "/on_exhausted",
		`PUT subscription {"tier":"indie","quota":0}`:               "/quota",
		`PUT subscription {"tier":"indie","overage_cap":0}`:         "/overage_cap",
		`PUT subscription {"tier":"indie","requests_per_minute":0}`: "/requests_per_minute",
		`PUT subscription {"tier":"indie","effective":"soon"}`:      "/effective",
		`PUT subscription {"tier":"indie","anchor_day":32}`:         "/anchor_day",
		`GET subscription?at=now `:                                  "?at",
	})
}

// An organization has the installation's thresholds unless it sets its
// own, even an empty list.
func TestThresholds(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	check := func(answer map[string]any, own bool, percents int) {
		t.Helper()
		if answer["own"] != own || len(answer["percents"].([]any)) != percents {
			t.Errorf("%v, want %d of its own: %t", answer, percents, own)
		}
	}
	check(a.must(t, 200, "GET", "thresholds", ""), false, len(ledger.DefaultThresholds()))
	check(a.must(t, 200, "PUT", "thresholds", `{"percents":[10,20]}`), true, 2)
	check(a.must(t, 200, "GET", "thresholds", ""), true, 2)
	check(a.must(t, 200, "PUT", "thresholds", `{"percents":[]}`), true, 0)
	check(a.must(t, 200, "PUT", "thresholds", `{"percents":null}`), false, len(ledger.DefaultThresholds()))
	a.refuses(t, map[string]string{`PUT thresholds {"percents":[0]}`: "/percents", `GET thresholds?own=true `: "?own"})
}

// An organization without charges becomes a test: its requests are
// used and its time only advances.
func TestTestClock(t *testing.T) {
	a := newAPI(t)
	a.SetClock(ledgertest.November.AddDate(0, -2, 1)) // a day after it began
	a.Start(t, "acme", ledger.Indie)
	if now := a.must(t, 200, "GET", "test-clock", ""); now["test"] != false || now["at"] != "2026-09-21T12:00:00Z" {
		t.Errorf("before: %v", now)
	}
	a.must(t, 400, "POST", "test-clock/use", `{"bytes":1}`) // it is no test yet
	if begun := a.must(t, 200, "PUT", "test-clock", `{}`); begun["test"] != true {
		t.Errorf("begun: %v", begun)
	}
	if used := a.must(t, 201, "POST", "test-clock/use", `{"bytes":90,"project":"project"}`); used["accepted"] != true ||
		used["covered"] != 90.0 || used["remaining"] != 10.0 || used["rule"] != nil {
		t.Errorf("used: %v", used)
	}
	if refused := a.must(t, 201, "POST", "test-clock/use", `{"bytes":11}`); refused["accepted"] != false || refused["rule"] != ledger.RuleQuota {
		t.Errorf("refused: %v", refused)
	}
	if later := a.must(t, 200, "PUT", "test-clock", `{"at":"2026-10-02T00:00:00Z"}`); later["at"] != "2026-10-02T00:00:00Z" {
		t.Errorf("later: %v", later)
	}
	if balance := a.must(t, 200, "GET", "balance", ""); balance["consumed"] != 0.0 || balance["remaining"] != 100.0 {
		t.Errorf("in its next period: %v", balance)
	}
	a.must(t, 404, "POST", "test-clock/use", `{"bytes":1,"project":"foreign"}`)
	a.refuses(t, map[string]string{
		`PUT test-clock {"at":"2026-10-01T00:00:00Z"}`: "/at", `PUT test-clock {"at":"0001-01-01T00:00:00Z"}`: "/at", `POST test-clock/use {"bytes":1,"key":"none"}`: "/key", `POST test-clock/use {"bytes":0}`: "/bytes", `GET test-clock?at=now `: "?at",
	})
}
