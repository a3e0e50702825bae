package console

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

const organizationsPath = "/console/usage/organizations"

type organizationsPage struct {
	Search        ui.Field
	State         ui.Field
	Filtered      bool
	Organizations []shownOrganization
	Pager         ui.Pager
}

// A shownOrganization is an account as operators see it.
type shownOrganization struct {
	ID, Name         string
	Tier, State      string
	Test             bool
	Used, Granted    int64
	Overshoot        int64
	PerMille         int64     // used of what was granted, 0 to 1000
	Ends, LastActive time.Time // of the period; LastActive is zero where none is kept
}

// Percent is the used part, 0 to 100, rounded down.
func (o shownOrganization) Percent() int64 { return o.PerMille / 10 }

// Bad reports whether the organization's requests are refused.
func (o shownOrganization) Bad() bool { return o.State != ledger.Active }

// organizationPlace is where a list of organizations continues.
type organizationPlace struct {
	After string `json:"a"`
}

// operates reports whether the reader is an operator.
func (s site) operates(r *http.Request) bool {
	reader := identity.FromContext(r.Context())
	return s.operators != "" && reader.Organization == s.operators && identity.RoleOperates(reader.Role())
}

// showOrganizations lists the accounts of all organizations. Only
// operators have this page.
func (p usagePages) showOrganizations(w http.ResponseWriter, r *http.Request) error {
	if !p.operates(r) {
		return httpapi.NotFound("page", organizationsPath)
	}
	query, place := accounts.AccountQuery{Containing: r.URL.Query().Get("q"), State: r.URL.Query().Get("state"), Limit: pageSize}, organizationPlace{}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &place); err != nil {
			return err
		}
	}
	query.After = place.After
	found, next, err := p.services.Accounts.List(r.Context(), query)
	if err != nil {
		return err
	}
	page := newOrganizationsPage(query)
	for _, account := range found {
		page.Organizations = append(page.Organizations, p.showOrganization(account))
	}
	if next != "" {
		cursor := httpapi.EncodeCursor(r, organizationPlace{next})
		page.Pager = ui.NewPager(r, &cursor)
	}
	p.pages.Write(w, r, http.StatusOK, "organizations", ui.View{Title: "All organizations", Tabs: p.tabs(r, organizationsPath), Data: page})
	return nil
}

func newOrganizationsPage(query accounts.AccountQuery) organizationsPage {
	return organizationsPage{
		Search: ui.Field{Name: "q", Label: "Id contains", Value: query.Containing, MaxLength: 64, Autocomplete: "off"},
		State: ui.Field{Name: "state", Label: "State", Choices: ui.NewChoices(query.State, [2]string{"", "any"},
			[2]string{ledger.Active, ledger.Active}, [2]string{ledger.Exhausted, ledger.Exhausted}, [2]string{ledger.Suspended, ledger.Suspended})},
		Filtered: query.Containing != "" || query.State != "",
	}
}

func (s site) showOrganization(a accounts.Account) shownOrganization {
	return shownOrganization{
		ID: a.Organization.ID, Name: s.directory.OrganizationName(a.Organization.ID), Test: a.Organization.IsTest(),
		Tier: string(a.Plan.Tier), State: a.State(), Used: a.Book.Used(), Granted: a.Book.Granted(),
		Overshoot: a.Book.Balances[ledger.Overshoot], PerMille: thousandths(a.Book.Used(), a.Book.Granted()), Ends: a.Book.Period.End, LastActive: a.LastActivity,
	}
}
