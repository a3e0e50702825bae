package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/identity"
)

// overviewPath is the part of a project's overview about the organization's quota.
const overviewPath = "/console/usage/overview"

func (p usagePages) showOverview(w http.ResponseWriter, r *http.Request) error {
	organization := identity.FromContext(r.Context()).Organization
	balance, err := p.services.Balances.Balance(r.Context(), organization, time.Time{})
	if errors.Is(err, ledger.ErrNoOrganization) {
		p.pages.WritePart(w, "overview", usagePage{})
		return nil
	}
	if err != nil {
		return err
	}
	forecast, err := p.services.Forecasts.Forecast(r.Context(), organization)
	if err != nil {
		return err
	}
	part := newUsagePage(balance)
	part.Forecast = forecast.Forecast
	p.pages.WritePart(w, "overview", part)
	return nil
}
