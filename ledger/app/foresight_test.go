package app_test

import (
	"net/http"
	"testing"
)

// Predictions for a request, the period and another plan match their
// description and change nothing.
func TestForesight(t *testing.T) {
	r, ledger, token := billed(t)
	r.Accept(logs("acme", 700))
	r.awaitCounted()
	for _, test := range []struct {
		body     string
		accepted bool
		rule     any
		left     float64
	}{{`{"bytes":300}`, true, nil, 0}, {`{"bytes":301}`, false, "quota", 300}} {
		status, trial := send(t, ledger, token, "POST", "acme/dry-run", "", test.body)
		if status != http.StatusOK || trial["accepted"] != test.accepted || trial["rule"] != test.rule || trial["remaining"] != test.left ||
			(trial["ended_by"] == nil) != test.accepted {
			t.Errorf("%s: %d %v", test.body, status, trial)
		}
	}
	send(t, ledger, token, "PUT", "acme/thresholds", "", `{"percents":[60]}`)
	send(t, ledger, token, "PUT", "acme/budgets", "", `[{"key":"key","bytes":750}]`)
	if status, trial := send(t, ledger, token, "POST", "acme/dry-run", "", `{"bytes":60,"key":"key"}`); status != http.StatusOK ||
		trial["rule"] != "budget" || trial["budget"].(map[string]any)["remaining"] != 50.0 || trial["ended_by"] != nil {
		t.Errorf("with a budget: %d %v", status, trial)
	}
	if status, found := get(t, ledger, token, "/v1/organizations/acme/thresholds"); status != http.StatusOK || found["own"] != true ||
		len(found["percents"].([]any)) != 1 {
		t.Errorf("thresholds: %d %v", status, found)
	}
	if status, _ := send(t, ledger, token, "PUT", "acme/thresholds", "", `{"percents":[80,50]}`); status != http.StatusBadRequest {
		t.Errorf("thresholds out of order: %d", status)
	}
	if status, found := send(t, ledger, token, "PUT", "acme/thresholds", "", `{"percents":null}`); status != http.StatusOK || found["own"] != false ||
		len(found["percents"].([]any)) != 3 {
		t.Errorf("the installation's thresholds: %d %v", status, found)
	}
	_, before := get(t, ledger, token, "/v1/organizations/acme/balance")
	if status, forecast := get(t, ledger, token, "/v1/organizations/acme/forecast"); status != http.StatusOK || forecast["method"] != nil || forecast["used"] != 700.0 {
		t.Errorf("%d %v", status, forecast)
	}
	status, simulated := send(t, ledger, token, "POST", "acme/simulation", "", `{"tier":"indie","quota":500,"on_exhausted":"overage","overage_cap":150}`)
	after, _ := simulated["after"].(map[string]any)
	periods, _ := simulated["periods"].([]any)
	if status != http.StatusOK || len(periods) == 0 || after["remaining"] != 300.0 {
		t.Fatalf("%d %v", status, simulated)
	}
	running := periods[0].(map[string]any)
	if running["covered"] != 500.0 || running["overage"] != 150.0 || running["refused"] != 50.0 || running["exhausted_on"] == nil {
		t.Errorf("the running period %v", running)
	}
	if next, _ := after["subscription"].(map[string]any)["next"].(map[string]any); next["quota"] != 500.0 {
		t.Errorf("a smaller plan is not scheduled: %v", after)
	}
	for body, path := range map[string]string{`{"bytes":0}`: "dry-run", `{"bytes":1,"colour":"k"}`: "dry-run",
		`{"tier":"gold"}`: "simulation", `{"tier":"indie","suspended":true}`: "simulation"} {
		if status, answer := send(t, ledger, token, "POST", "acme/"+path, "", body); status != http.StatusBadRequest {
			t.Errorf("%s %s: %d %v", path, body, status, answer)
		}
	}
	if _, now := get(t, ledger, token, "/v1/organizations/acme/balance"); now["remaining"] != before["remaining"] || now["granted"] != before["granted"] {
		t.Errorf("before %v, now %v", before, now)
	}
}
