package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

const planPath = "/console/usage/plan"

type planPage struct {
	Known        bool   // false: the ledger has not consumed the organization's creation yet
	Other        string // another organization; empty: the reader's own
	Now          plans.Subscription
	Fields       []ui.Field
	Preview      *forecasts.Simulation // nil: none was requested
	Organization string
	Wanted       planForm
	CanSet       bool   // the reader is an operator
	Key          string // idempotency key
}

var planFlashes = map[string]string{"plan-changed": "The plan is decided. What is in force, and what comes next, stands here."}

// planOf returns the organization of a request. Operators may name any.
func (c *console) planOf(r *http.Request) (string, error) {
	own, named := identity.OrganizationOf(r.Context()), r.FormValue("organization")
	switch {
	case named == "" || named == own:
		return own, nil
	case c.operates(r):
		return named, nil
	}
	return "", httpapi.NotFound("organization", named)
}

// showPlan previews another plan. It changes nothing.
func (c *console) showPlan(w http.ResponseWriter, r *http.Request) error {
	organization, err := c.planOf(r)
	if err != nil {
		return err
	}
	return c.writePlan(w, r, organization, planFormOf(r.URL.Query()))
}

func (c *console) writePlan(w http.ResponseWriter, r *http.Request, organization string, form planForm) error {
	view := ui.View{Title: "Another plan", Data: planPage{}}
	now, err := c.Services.Plans.Subscription(r.Context(), organization)
	if errors.Is(err, ledger.ErrNoOrganization) {
		c.pages.Write(w, r, http.StatusOK, "plan", view)
		return nil
	}
	if err != nil {
		return err
	}
	page, status := planPage{Known: true, Now: now, Wanted: form, Fields: planFields(formOfPlan(now), ledger.Invalid{})}, http.StatusOK
	if form.tier() != "" {
		if status, err = c.preview(r, &page, organization, form); err != nil {
			return err
		}
	}
	page.Organization, page.CanSet, page.Key = organization, c.operates(r), rand.Text()
	if organization != identity.OrganizationOf(r.Context()) {
		page.Other = organization
	}
	view.Data, view.Flash = page, ui.TakeFlash(w, r, planFlashes)
	c.pages.Write(w, r, status, "plan", view)
	return nil
}

// preview adds the effect of a plan, or its error.
func (c *console) preview(r *http.Request, page *planPage, organization string, form planForm) (status int, err error) {
	var preview forecasts.Simulation
	wanted, err := form.wanted()
	if err == nil {
		preview, err = c.Services.Forecasts.Simulate(r.Context(), organization, wanted)
	}
	var invalid ledger.Invalid
	switch {
	case errors.As(err, &invalid):
		page.Fields = planFields(form, invalid)
		return http.StatusUnprocessableEntity, nil
	case err != nil:
		return 0, err
	}
	page.Fields, page.Preview = planFields(form, invalid), &preview
	return http.StatusOK, nil
}

// changePlan changes the plan as previewed, once for each preview. Only
// operators have this form.
func (c *console) changePlan(w http.ResponseWriter, r *http.Request) error {
	if !c.operates(r) {
		return httpapi.NotFound("page", planPath)
	}
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	organization, err := c.planOf(r)
	if err != nil {
		return err
	}
	form := planFormOf(r.PostForm)
	if err := c.subscribe(r, organization, form); err != nil {
		return c.afterPlan(w, r, organization, form, err)
	}
	ui.SetFlash(w, "plan-changed")
	http.Redirect(w, r, planPath+"?"+url.Values{"organization": {organization}}.Encode(), http.StatusSeeOther)
	return nil
}

func (c *console) subscribe(r *http.Request, organization string, form planForm) error {
	reader := identity.FromContext(r.Context())
	request := unitofwork.Request{Actor: reader.Member, ID: httpapi.RequestID(r.Context()), IdempotencyKey: r.PostForm.Get("key")}
	wanted, err := form.wanted()
	if err == nil {
		_, err = c.Services.Plans.Subscribe(r.Context(), organization, request, wanted)
	}
	return err
}

// afterPlan answers a failed change.
func (c *console) afterPlan(w http.ResponseWriter, r *http.Request, organization string, form planForm, err error) error {
	var invalid ledger.Invalid
	var full ledger.LimitReached
	switch {
	case errors.As(err, &invalid):
		return c.writePlan(w, r, organization, form)
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, idempotency.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.Is(err, ledger.ErrNoOrganization):
		return httpapi.NotFound("organization", organization)
	}
	return err
}

// Beyond describes requests beyond a plan's allowance.
func (planPage) Beyond(p ledger.Plan) string {
	switch {
	case !p.Overage:
		return "refused"
	case p.OverageCap == 0:
		return "overage"
	}
	return "overage, up to " + ui.Bytes(p.OverageCap)
}

// LastDay returns the last day of a previewed period.
func (planPage) LastDay(p ledger.SimulatedPeriod) time.Time { return p.Period.End.AddDate(0, 0, -1) }
