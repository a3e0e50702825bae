package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// What becomes of requests beyond the allowance, as the form has it.
const (
	refuse  = "refuse"
	overage = "overage"
)

type planPage struct {
	Known       bool // false: the ledger has not consumed the organization's creation yet
	Tier        ui.Field
	OnExhausted ui.Field
	Preview     *forecasts.Simulation // nil: none was asked for
}

// showPlan previews another plan. It decides nothing.
func (c *console) showPlan(w http.ResponseWriter, r *http.Request) error {
	organization := identity.OrganizationOf(r.Context())
	now, err := c.Services.Plans.Subscription(r.Context(), organization)
	if errors.Is(err, ledger.ErrNoOrganization) {
		c.pages.Write(w, r, http.StatusOK, "plan", ui.View{Title: "Another plan", Data: planPage{}})
		return nil
	}
	if err != nil {
		return err
	}
	query, page, status := r.URL.Query(), newPlanPage(now.Plan), http.StatusOK
	if query.Has("tier") {
		wanted := ledger.Plan{Tier: ledger.Tier(query.Get("tier")), Overage: query.Get("on_exhausted") == overage}
		page = newPlanPage(wanted)
		preview, err := c.Services.Forecasts.Simulate(r.Context(), organization, ledger.Subscription{Plan: wanted})
		var invalid ledger.Invalid
		switch {
		case errors.As(err, &invalid):
			page.Tier.Fault, status = invalid.Detail+" "+invalid.Fix, http.StatusUnprocessableEntity
		case err != nil:
			return err
		default:
			page.Preview = &preview
		}
	}
	c.pages.Write(w, r, status, "plan", ui.View{Title: "Another plan", Data: page})
	return nil
}

func newPlanPage(chosen ledger.Plan) planPage {
	beyond := refuse
	if chosen.Overage {
		beyond = overage
	}
	tiers := []ledger.Tier{ledger.Indie, ledger.Bootstrapper, ledger.Compliance, ledger.Scale}
	pairs := make([][2]string, len(tiers))
	for i, tier := range tiers {
		pairs[i] = [2]string{string(tier), string(tier)}
	}
	return planPage{
		Known: true, Tier: ui.Field{Name: "tier", Label: "Tier", Choices: ui.Choose(string(chosen.Tier), pairs...)},
		OnExhausted: ui.Field{Name: "on_exhausted", Label: "Beyond the allowance", Choices: ui.Choose(beyond,
			[2]string{refuse, "refuse requests"}, [2]string{overage, "accept them as overage"})},
	}
}

// LastDay is the last day of a period of a preview.
func (planPage) LastDay(p ledger.SimulatedPeriod) time.Time { return p.Period.End.AddDate(0, 0, -1) }
