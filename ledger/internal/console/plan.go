package console

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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
	Other        string // the name of another organization; empty: the reader's own
	Now          plans.Subscription
	tiers        ledger.Tiers
	Tier         ui.Field
	Terms        []ui.Field // folded unless they matter
	Unfolded     bool
	Preview      *forecasts.Simulation // nil: none was requested
	Organization string
	Wanted       planForm
	CanSet       bool   // the reader is an operator
	Key          string // idempotency key
}

// Count formats requests.
func (planPage) Count(n int) string { return ui.Count(int64(n)) }

// planPages preview another plan and change to it.
type planPages struct {
	site
	plans     *plans.Service
	forecasts *forecasts.Service
}

var planFlashes = map[string]string{"plan-changed": "The plan is changed. It is shown below, with what takes effect later."}

// planOf returns the organization of a request. Operators may name any.
func (p planPages) planOf(r *http.Request) (string, error) {
	own, named := identity.OrganizationOf(r.Context()), r.FormValue("organization")
	switch {
	case named == "" || named == own:
		return own, nil
	case p.operates(r):
		return named, nil
	}
	return "", httpapi.NotFound("organization", named)
}

// showPlan previews another plan. It changes nothing.
func (p planPages) showPlan(w http.ResponseWriter, r *http.Request) error {
	organization, err := p.planOf(r)
	if err != nil {
		return err
	}
	return p.writePlan(w, r, organization, planFormOf(r.URL.Query()))
}

func (p planPages) writePlan(w http.ResponseWriter, r *http.Request, organization string, form planForm) error {
	view := ui.View{Title: "Plan", Tabs: p.tabs(r, planPath), Data: planPage{}}
	now, err := p.plans.Subscription(r.Context(), organization)
	if errors.Is(err, ledger.ErrNoOrganization) {
		p.pages.Write(w, r, http.StatusOK, "plan", view)
		return nil
	}
	if err != nil {
		return err
	}
	page, status := planPage{Known: true, Now: now, Wanted: form}, http.StatusOK
	if page.tiers, err = p.plans.Tiers(r.Context(), organization); err != nil {
		return err
	}
	page.fill(formOfPlan(now), ledger.Invalid{})
	if form.tier() != "" {
		if status, err = p.preview(r, &page, organization, form); err != nil {
			return err
		}
	}
	page.Organization, page.CanSet, page.Key = organization, p.operates(r), rand.Text()
	page.Unfolded = page.CanSet || status != http.StatusOK
	if organization != identity.OrganizationOf(r.Context()) {
		page.Other = p.directory.OrganizationName(organization)
	}
	view.Data, view.Flash = page, ui.TakeFlash(w, r, planFlashes)
	p.pages.Write(w, r, status, "plan", view)
	return nil
}

// preview adds the effect of a plan, or its error.
func (p planPages) preview(r *http.Request, page *planPage, organization string, form planForm) (status int, err error) {
	var preview forecasts.Simulation
	wanted, err := form.wanted()
	if err == nil {
		preview, err = p.forecasts.Simulate(r.Context(), organization, wanted)
	}
	var invalid ledger.Invalid
	switch {
	case errors.As(err, &invalid):
		page.fill(form, invalid)
		return http.StatusUnprocessableEntity, nil
	case err != nil:
		return 0, err
	}
	page.fill(form, invalid)
	page.Preview = &preview
	return http.StatusOK, nil
}

// changePlan changes the plan as previewed, once for each preview. Only
// operators have this form.
func (p planPages) changePlan(w http.ResponseWriter, r *http.Request) error {
	if !p.operates(r) {
		return httpapi.NotFound("page", planPath)
	}
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	organization, err := p.planOf(r)
	if err != nil {
		return err
	}
	form := planFormOf(r.PostForm)
	if err := p.subscribe(r, organization, form); err != nil {
		return p.afterPlan(w, r, organization, form, err)
	}
	ui.SetFlash(w, "plan-changed")
	http.Redirect(w, r, planPath+"?"+url.Values{"organization": {organization}}.Encode(), http.StatusSeeOther)
	return nil
}

func (p planPages) subscribe(r *http.Request, organization string, form planForm) error {
	reader := identity.FromContext(r.Context())
	request := unitofwork.Request{Actor: reader.Member, ID: httpapi.RequestID(r.Context()), IdempotencyKey: r.PostForm.Get("key")}
	wanted, err := form.wanted()
	if err == nil {
		_, err = p.plans.Subscribe(r.Context(), organization, request, wanted)
	}
	return err
}

// afterPlan answers a failed change.
func (p planPages) afterPlan(w http.ResponseWriter, r *http.Request, organization string, form planForm, err error) error {
	var invalid ledger.Invalid
	var full ledger.LimitReached
	switch {
	case errors.As(err, &invalid):
		return p.writePlan(w, r, organization, form)
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, idempotency.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.Is(err, ledger.ErrNoOrganization):
		return httpapi.NotFound("organization", organization)
	}
	return err
}

// Beyond describes what happens to logs beyond a plan's quota.
func (planPage) Beyond(p ledger.Plan) string {
	switch {
	case !p.Overage:
		return "refused"
	case p.OverageCap == 0:
		return "accepted as overage"
	}
	return "accepted as overage, up to " + ui.Bytes(p.OverageCap)
}

// fill fills the form of a plan.
func (p *planPage) fill(form planForm, fault ledger.Invalid) {
	fields := planFields(p.tiers, form, fault)
	p.Tier, p.Terms = fields[0], fields[1:]
}

// LastDay returns the last day of a previewed period.
func (planPage) LastDay(p ledger.SimulatedPeriod) time.Time { return p.Period.End.AddDate(0, 0, -1) }

// Values for requests beyond the allowance.
const (
	refuse  = "refuse"
	overage = "overage"
)

// The fields of a plan, named as the API names them.
const (
	tierField     = "tier"
	quotaField    = "quota"
	requestsField = "requests_per_minute"
	beyondField   = "on_exhausted"
	capField      = "overage_cap"
	anchorField   = "anchor_day"
)

// A planForm holds the submitted fields of a plan.
type planForm map[string]string

func planFormOf(values url.Values) planForm {
	form := planForm{}
	for _, name := range []string{tierField, quotaField, requestsField, beyondField, capField, anchorField} {
		form[name] = strings.TrimSpace(values.Get(name))
	}
	return form
}

// formOfPlan returns the form of a subscription.
func formOfPlan(s plans.Subscription) planForm {
	form := planForm{
		tierField: string(s.Plan.Tier), quotaField: sizeText(s.Plan.Quota), beyondField: refuse, capField: sizeText(s.Plan.OverageCap),
		anchorField: strconv.Itoa(cmp.Or(s.NextAnchor, s.AnchorDay)),
	}
	if s.Plan.Overage {
		form[beyondField] = overage
	}
	if s.Plan.RequestsPerMinute > 0 {
		form[requestsField] = strconv.Itoa(s.Plan.RequestsPerMinute)
	}
	return form
}

func (f planForm) tier() string { return f[tierField] }

// wanted returns the subscription of a form.
func (f planForm) wanted() (wanted ledger.Subscription, err error) {
	plan := ledger.Plan{Tier: ledger.Tier(f.tier()), Overage: f[beyondField] == overage}
	if plan.Quota, err = f.size(quotaField); err != nil {
		return wanted, err
	}
	if plan.Overage { // otherwise a cap has no meaning
		if plan.OverageCap, err = f.size(capField); err != nil {
			return wanted, err
		}
	}
	if plan.RequestsPerMinute, err = f.number(requestsField, ledger.MaxRequestsPerMinute); err != nil {
		return wanted, err
	}
	wanted.Plan = plan
	if anchor, err := f.number(anchorField, 31); err != nil || anchor > 0 {
		wanted.AnchorDay = &anchor
		return wanted, err
	}
	return wanted, nil
}

// size parses a field in bytes; 0 where it is empty.
func (f planForm) size(field string) (int64, error) {
	if f[field] == "" {
		return 0, nil
	}
	size, ok := parseSize(f[field])
	if !ok {
		return 0, ledger.Invalid{Field: field, Detail: fmt.Sprintf("%q is not a size.", f[field]),
			Fix: "Use a number above zero and a unit, such as 1.5 GiB, or leave it out."}
	}
	return size, nil
}

// number parses a field from 1 to most; 0 where it is empty.
func (f planForm) number(field string, most int) (int, error) {
	if f[field] == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(f[field])
	if err != nil || number < 1 || number > most {
		return 0, ledger.Invalid{Field: field, Detail: fmt.Sprintf("It is %q.", f[field]),
			Fix: fmt.Sprintf("Use a whole number from 1 to %d, or leave it out.", most)}
	}
	return number, nil
}

// planFields returns the fields of a form, each with its error.
func planFields(of ledger.Tiers, form planForm, fault ledger.Invalid) []ui.Field {
	var tiers [][2]string
	for _, tier := range []ledger.Tier{ledger.Indie, ledger.Bootstrapper, ledger.Compliance, ledger.Scale} {
		text := string(tier)
		if terms, known := of[tier]; known {
			text += fmt.Sprintf(": %s, %s requests per minute", ui.Bytes(terms.Quota), ui.Count(int64(terms.RequestsPerMinute)))
		}
		tiers = append(tiers, [2]string{string(tier), text})
	}
	beyond := [][2]string{{refuse, "refuse more logs"}, {overage, "accept more logs as overage"}}
	fields := []ui.Field{
		{Name: tierField, Label: "Tier", Choices: ui.NewChoices(form.tier(), tiers...)},
		{Name: quotaField, Label: "Quota per period", Optional: true, Hint: "Such as 1.5 GiB. Leave it empty for the tier's quota."},
		{Name: requestsField, Label: "Requests per minute", Optional: true, Hint: "Leave it empty for the tier's limit."},
		{Name: beyondField, Label: "When the quota is used up", Choices: ui.NewChoices(form[beyondField], beyond...)},
		{Name: capField, Label: "Most overage per period", Optional: true, Hint: "Such as 10 GiB. Leave it empty for no limit. Only for plans that accept overage."},
		{Name: anchorField, Label: "Periods begin on day", Optional: true, Hint: "1 to 31, from the next period on. Shorter months use their last day."},
	}
	for i := range fields {
		fields[i].Value, fields[i].MaxLength, fields[i].Autocomplete = form[fields[i].Name], maxPlanField, "off"
		if fields[i].Name == fault.Field {
			fields[i].Fault = fault.Detail + " " + fault.Fix
		}
	}
	return fields
}

// maxPlanField is the longest field, in characters.
const maxPlanField = 24
