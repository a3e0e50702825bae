package http_test

import (
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
)

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
