package ledger

import (
	"fmt"
	"time"
)

// CheckAgainst returns how a grant differs from the decision that made it;
// empty: not at all.
func (g Grant) CheckAgainst(made Decision, o Organization) string {
	var want Grant
	switch d := made.(type) {
	case Granted:
		want = d.Grant
	case Adjusted:
		want = Grant{
			ID: d.ID, Amount: d.Bytes, Starts: g.Created, Expires: o.PeriodAt(g.Created).End, Source: FromAdjustment, Reason: d.Reason, Created: g.Created,
		}
	default:
		return fmt.Sprintf("decision %d made no grant", g.Decision)
	}
	for _, compared := range []struct {
		what     string
		is, want any
	}{
		{"id", g.ID, want.ID}, {"amount", g.Amount, want.Amount}, {"priority", g.Priority, want.Priority}, {"source", g.Source, want.Source},
		{"start", g.Starts.UnixMicro(), want.Starts.UnixMicro()}, {"expiry", g.Expires.UnixMicro(), want.Expires.UnixMicro()},
		{"reason", g.Reason, want.Reason}, {"time", g.Created.UnixMicro(), want.Created.UnixMicro()},
		{"rollover cap", capOf(g), capOf(want)},
	} {
		if compared.is != compared.want {
			return fmt.Sprintf("its %s is %v, by decision %d it is %v", compared.what, compared.is, g.Decision, compared.want)
		}
	}
	return ""
}

// capOf returns a grant's rollover cap; -1: it has none.
func capOf(g Grant) int64 {
	if g.RolloverCap == nil {
		return -1
	}
	return *g.RolloverCap
}

// Check returns how a grant contradicts itself at an instant; empty: not
// at all.
func (g Grant) Check(at time.Time) string {
	gone, ended := g.Consumed+g.Expired+g.Voided, !g.Ended.IsZero()
	switch {
	case g.Status == GrantScheduled && (g.Remaining+gone != 0 || ended):
		return "it has not started, and was used"
	case g.Status != GrantScheduled && ended != (g.Remaining == 0):
		return fmt.Sprintf("%d bytes are left of it, and it ended at %s", g.Remaining, g.Ended)
	case g.Status == GrantActive && (g.Voided > 0 || g.Expired > 0 && g.RolloverCap == nil):
		return "it is in force, and was taken back or has expired"
	case g.Status == GrantActive && ended && g.Starts.After(g.Ended):
		return fmt.Sprintf("it started at %s, and ended at %s", g.Starts, g.Ended)
	case g.Status == GrantExpired && (g.Expired == 0 || g.Voided > 0 || !g.Ended.Equal(g.Expires)):
		return "it has expired, and not at its expiry"
	case g.Status == GrantVoided && g.Voided == 0:
		return "it is voided, and nothing of it"
	case g.Announced && g.live() && g.Source == FromBilling && g.Expires.Sub(g.Starts) > ExpiryNotice && at.Before(g.Expires.Add(-ExpiryNotice)):
		return "its expiry is announced too early"
	}
	return ""
}
