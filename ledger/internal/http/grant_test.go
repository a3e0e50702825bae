package http_test

import (
	"testing"

	"github.com/weirlog/weir/ledger"
)

// A grant is listed with its use, and its remainder voided once.
func TestGrants(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	made := a.must(t, 201, "POST", "grants", `{"amount":50,"reason":"gift","priority":1,"expires_at":"2026-12-20T00:00:00Z","rollover_cap":5}`)
	if made["state"] != "active" || made["remaining"] != 50.0 || made["source"] != "granted" || made["expires_at"] != "2026-12-20T00:00:00Z" || made["rollover_cap"] != 5.0 {
		t.Errorf("granted: %v", made)
	}
	later := a.must(t, 201, "POST", "grants", `{"amount":5,"reason":"later","starts_at":"2026-12-01T00:00:00Z"}`)
	if later["state"] != "scheduled" || later["expires_at"] != nil {
		t.Errorf("granted for later: %v", later)
	}
	a.Book(t, a.NewCharge("acme", 20))
	first := a.must(t, 200, "GET", "grants?limit=1", "")
	second := a.must(t, 200, "GET", "grants?limit=1&cursor="+first["next_cursor"].(string), "")
	if one, other := first["items"].([]any)[0].(map[string]any), second["items"].([]any)[0].(map[string]any); one["id"] != later["id"] ||
		other["id"] != made["id"] || other["consumed"] != 20.0 || second["next_cursor"] != nil {
		t.Errorf("listed: %v, then %v", first, second)
	}
	path := "grants/" + made["id"].(string) + "/void"
	for range 2 {
		if voided := a.must(t, 200, "POST", path, ""); voided["state"] != "voided" || voided["voided"] != 30.0 || voided["consumed"] != 20.0 {
			t.Errorf("taken back: %v", voided)
		}
	}
	for _, none := range []string{"grt_none", "%00", "%ff"} {
		a.must(t, 404, "POST", "grants/"+none+"/void", "")
	}
	a.refuses(t, map[string]string{
		`POST grants {"amount":0,"reason":"x"}`: "/amount", `POST grants {"amount":1,"expires_at":"2026-11-19T00:00:00Z"}`: "/expires_at",
		`GET grants?state=active `:                                     "?state",
		`POST grants {"amount":1,"starts_at":"0001-01-01T00:00:00Z"}`:  "/starts_at", // Go's zero time, not absent
		`POST grants {"amount":1,"expires_at":"0001-01-01T00:00:00Z"}`: "/expires_at",
		`POST grants {"amount":1,"expires_at":"9999-12-31T23:59:59Z"}`: "/expires_at",
		`POST grants {"amount":1,"expires_at":"2026-12-31T23:59:60Z"}`: "/expires_at",
		"POST grants {\"amount\":1,\"reason\":\"\u0085\"}":             "/reason",
		"POST grants {\"amount\":1,\"reason\":\"\u202e\"}":             "/reason",
	})
}

// An adjustment stands among the grants and can't be voided, as it
// corrects a charge.
func TestAdjustmentsAreNotVoided(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	made := a.must(t, 201, "POST", "adjustments", `{"amount":30,"reason":"charged twice"}`)
	listed := a.must(t, 200, "GET", "grants", "")["items"].([]any)[0].(map[string]any)
	if listed["id"] != made["id"] || listed["source"] != "adjustment" {
		t.Fatalf("%v is listed as %v", made, listed)
	}
	a.must(t, 400, "POST", "grants/"+made["id"].(string)+"/void", "")
	a.Book(t, a.NewCharge("acme", 130))
	a.must(t, 400, "POST", "grants/"+made["id"].(string)+"/void", "") // used up, too
	if balance := a.must(t, 200, "GET", "balance", ""); balance["consumed"] != 130.0 || balance["voided"] != 0.0 {
		t.Errorf("%v", balance)
	}
}

// An adjustment credits a wrong charge to its period and lists its transfers.
func TestAdjustments(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 40))
	for period, want := range map[string]any{"": nil, `,"period":"2026-11-10T00:00:00Z"`: "2026-11-01T00:00:00Z"} {
		made := a.must(t, 201, "POST", "adjustments", `{"amount":5,"reason":"charged twice"`+period+`}`)
		if transfers := made["transfers"].([]any); made["amount"] != 5.0 || made["of_period"] != want || len(transfers) != 1 ||
			transfers[0].(map[string]any)["reason"] != "adjusted" || transfers[0].(map[string]any)["amount"] != 5.0 {
			t.Errorf("adjusted: %v", made)
		}
	}
	if balance := a.must(t, 200, "GET", "balance", ""); balance["remaining"] != 70.0 {
		t.Errorf("after that: %v", balance)
	}
	a.refuses(t, map[string]string{`POST adjustments {"amount":0,"reason":"x"}`: "/amount", `POST adjustments {"amount":1,"period":"2027-01-01T00:00:00Z"}`: "/period",
		`POST adjustments {"amount":1,"period":"0001-01-01T00:00:00Z"}`: "/period"})
}
