package http_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
)

// The balance is that of now or of the requested instant.
func TestBalance(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 30))
	a.Pass(time.Hour)
	a.Book(t, a.NewCharge("acme", 90))
	status, now := a.get(t, "/v1/organizations/acme/balance")
	if status != 200 || now["consumed"] != 100.0 || now["remaining"] != 0.0 || now["overage"] != 0.0 || now["overshoot"] != 20.0 || now["state"] != "exhausted" || now["tier"] != "indie" {
		t.Errorf("%d %v", status, now)
	}
	status, before := a.get(t, "/v1/organizations/acme/balance?at="+ledgertest.November.Format(time.RFC3339))
	if status != 200 || before["consumed"] != 30.0 || before["remaining"] != 70.0 || before["state"] != "active" {
		t.Errorf("%d %v", status, before)
	}
}

// When the wait fails, the answer is an error and not an outdated
// balance: at once where the log ends before what is awaited.
func TestWhatIsNotBookedIsNotAnswered(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Balances.Waiter.End = func(context.Context) (snapshot.End, error) {
		return snapshot.End{Next: contract.Positions{0: 12}}, nil
	}
	for offset, want := range map[string]struct {
		status int
		code   string
	}{"0:12": {500, "unavailable"}, "0:13": {400, "invalid_request"}, "1:1": {400, "invalid_request"}, "1:0": {200, ""}} {
		status, answer := a.get(t, "/v1/organizations/acme/balance?min_offset="+offset)
		if code, _ := answer["code"].(string); status != want.status || code != want.code {
			t.Errorf("%s: %d %v, want %+v", offset, status, answer, want)
		}
	}
}
