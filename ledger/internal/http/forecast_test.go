package http_test

import (
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
)

// A forecast is empty for a new organization, and dates the end of a
// used one's quota.
func TestForecast(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	if none := a.must(t, 200, "GET", "forecast", ""); none["method"] != nil || none["used_at_end"] != nil || none["exhausted_on"] != nil || none["used"] != 0.0 {
		t.Errorf("of nothing: %v", none)
	}
	for _, day := range []int{-4, -3, -1, 0} {
		a.SetClock(ledgertest.November.AddDate(0, 0, day))
		a.Book(t, a.NewCharge("acme", 8))
	}
	some := a.must(t, 200, "GET", "forecast", "")
	used, _ := some["used_at_end"].(map[string]any)
	runs, _ := some["exhausted_on"].(map[string]any)
	if some["method"] != ledger.ByMean || some["days"] != 4.0 || some["per_day"] != 6.0 || some["used"] != 32.0 || used["expected"] != 95.0 || runs["expected"] != nil {
		t.Errorf("of four days: %v", some)
	}
	a.Book(t, a.NewCharge("acme", 60))
	if more := a.must(t, 200, "GET", "forecast", ""); more["exhausted_on"].(map[string]any)["expected"] != "2026-11-21" {
		t.Errorf("of a day more: %v", more)
	}
	a.refuses(t, map[string]string{"GET forecast?days=3 ": "?days"})
}

// A simulation shows the effect of a subscription, now and on past
// periods, and changes nothing.
func TestSimulation(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.SetClock(ledgertest.November.AddDate(0, -1, 0))
	a.Book(t, a.NewCharge("acme", 90))
	a.SetClock(ledgertest.November)
	simulated := a.must(t, 200, "POST", "simulation", `{"tier":"indie","quota":50,"on_exhausted":"overage","overage_cap":30}`)
	before, after := simulated["before"].(map[string]any), simulated["after"].(map[string]any)
	next, _ := after["subscription"].(map[string]any)["next"].(map[string]any) // a reduction begins with a period
	if before["subscription"].(map[string]any)["next"] != nil || next["quota"] != 50.0 || before["remaining"] != 100.0 || after["remaining"] != 100.0 {
		t.Errorf("before %v, after %v", before, after)
	}
	october, _ := simulated["periods"].([]any)[1].(map[string]any)
	if october["used"] != 90.0 || october["quota"] != 50.0 || october["covered"] != 50.0 || october["overage"] != 30.0 || october["refused"] != 10.0 || october["exhausted_on"] != "2026-10-20" {
		t.Errorf("October: %v", october)
	}
	if now := a.must(t, 200, "GET", "subscription", ""); now["next"] != nil {
		t.Errorf("it changed %v", now)
	}
	a.refuses(t, map[string]string{
		`POST simulation {"tier":"indie","suspended":true}`: "/suspended", `POST simulation {"tier":"none"}`: "/tier", `POST simulation {"tier":"indie","quota":0}`: "/quota",
	})
}

// A dry run returns the outcome of a request, its rule and the resolution,
// and charges nothing.
func TestDryRun(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 60))
	if fits := a.must(t, 200, "POST", "dry-run", `{"bytes":40}`); fits["accepted"] != true || fits["covered"] != 40.0 || fits["exhausts"] != true || fits["rule"] != nil || fits["code"] != nil || fits["ended_by"] != nil {
		t.Errorf("what fits: %v", fits)
	}
	refused := a.must(t, 200, "POST", "dry-run", `{"bytes":41}`)
	resolution, _ := refused["ended_by"].(map[string]any)
	if refused["accepted"] != false || refused["rule"] != ledger.RuleQuota || refused["code"] != "quota_exceeded" || refused["remaining"] != 40.0 || resolution["grant"] != 1.0 {
		t.Errorf("beyond the quota: %v", refused)
	}
	a.must(t, 200, "PUT", "budgets", `[{"project":"project","bytes":65}]`)
	beyond := a.must(t, 200, "POST", "dry-run", `{"bytes":6,"project":"project"}`)
	if budget, _ := beyond["budget"].(map[string]any); beyond["rule"] != ledger.RuleBudget || budget["project"] != "project" || budget["remaining"] != 5.0 {
		t.Errorf("beyond a budget: %v", beyond)
	}
	if balance := a.must(t, 200, "GET", "balance", ""); balance["consumed"] != 60.0 {
		t.Errorf("it charged: %v", balance)
	}
	a.must(t, 404, "POST", "dry-run", `{"bytes":1,"project":"foreign"}`)
	a.refuses(t, map[string]string{`POST dry-run {"bytes":0}`: "/bytes", `POST dry-run {"bytes":-1}`: "/bytes"})
}
