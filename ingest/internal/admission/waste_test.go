package admission_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/identity"
)

// A sender over its limit of waste waits until it has refilled; others
// don't, and no token is taken.
func TestGateLimitsWaste(t *testing.T) {
	now := start
	gate := admission.NewGate(func() time.Time { return now })
	gate.LimitWaste(fairshare.Rate{Burst: 100, PerSecond: 10})
	gate.Apply("org", 60, account(1000))
	gate.Apply("other", 60, account(1000))
	gate.Waste("org", 100)
	if p := gate.Enter(principal("org")); !p.Rate.Allowed || p.Wasted {
		t.Fatalf("within the limit: %+v", p.Rate)
	}
	gate.Waste("org", 50)
	if p := gate.Enter(principal("org")); p.Rate.Allowed || !p.Wasted || p.Rate.RetryAfter != 5*time.Second || p.Rate.Remaining != 59 {
		t.Errorf("beyond it: %+v", p.Rate)
	}
	if p := gate.Enter(principal("other")); !p.Rate.Allowed {
		t.Errorf("another: %+v", p.Rate)
	}
	now = now.Add(5 * time.Second)
	if p := gate.Enter(principal("org")); !p.Rate.Allowed {
		t.Errorf("after the wait: %+v", p.Rate)
	}
}

func principal(organization string) identity.Principal {
	return identity.Principal{Organization: organization, Project: "p", ID: "k"}
}
