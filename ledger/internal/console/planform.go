package console

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/shared/ui"
)

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
		return 0, ledger.Invalid{Field: field, Detail: fmt.Sprintf("%q is no size.", f[field]),
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
func planFields(form planForm, fault ledger.Invalid) []ui.Field {
	var tiers [][2]string
	for _, tier := range []ledger.Tier{ledger.Indie, ledger.Bootstrapper, ledger.Compliance, ledger.Scale} {
		tiers = append(tiers, [2]string{string(tier), string(tier)})
	}
	beyond := [][2]string{{refuse, "refuse requests"}, {overage, "accept them as overage"}}
	fields := []ui.Field{
		{Name: tierField, Label: "Tier", Choices: ui.NewChoices(form.tier(), tiers...)},
		{Name: quotaField, Label: "Quota of a period", Optional: true, Hint: "A size, such as 1.5 GiB. Empty: the tier's."},
		{Name: requestsField, Label: "Requests per minute", Optional: true, Hint: "Empty: the tier's."},
		{Name: beyondField, Label: "Beyond the allowance", Choices: ui.NewChoices(form[beyondField], beyond...)},
		{Name: capField, Label: "Most overage of a period", Optional: true, Hint: "A size, where requests are accepted as overage. Empty: as much as comes."},
		{Name: anchorField, Label: "Periods begin on day", Optional: true, Hint: "1 to 31, from the next period on. A shorter month has its last day instead."},
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
