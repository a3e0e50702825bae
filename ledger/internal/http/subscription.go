package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/shared/httpapi"
)

// Values for requests beyond the quota.
const (
	refuse  = "refuse"
	overage = "overage"
)

// termsBody is the terms of a plan.
type termsBody struct {
	Tier              string `json:"tier"`
	Quota             int64  `json:"quota"`
	RequestsPerMinute int    `json:"requests_per_minute"`
	RetentionDays     int    `json:"retention_days"`
	OnExhausted       string `json:"on_exhausted"`
	OverageCap        *int64 `json:"overage_cap"` // null: no cap or no overage
}

type subscriptionBody struct {
	Organization string `json:"organization"`
	termsBody
	Suspended     bool       `json:"suspended"`
	State         string     `json:"state"`
	Since         time.Time  `json:"since"`
	Period        periodBody `json:"period"`
	AnchorDay     int        `json:"anchor_day"`      // the day periods begin
	NextAnchorDay *int       `json:"next_anchor_day"` // from the next period on; null: unchanged
	Next          *nextBody  `json:"next"`            // null: nothing is scheduled
}

type nextBody struct {
	At time.Time `json:"at"`
	termsBody
}

func newTermsBody(plan ledger.Plan, terms ledger.Terms) termsBody {
	body := termsBody{
		Tier: string(plan.Tier), Quota: terms.Quota, RequestsPerMinute: terms.RequestsPerMinute, RetentionDays: terms.RetentionDays,
		OnExhausted: onExhausted(plan.Overage),
	}
	if plan.OverageCap > 0 {
		body.OverageCap = &plan.OverageCap
	}
	return body
}

func onExhausted(charged bool) string {
	if charged {
		return overage
	}
	return refuse
}

func newSubscriptionBody(s plans.Subscription) subscriptionBody {
	body := subscriptionBody{
		Organization: s.Organization, termsBody: newTermsBody(s.Plan, s.Terms), Suspended: s.Suspended, State: s.State, Since: s.Plan.From,
		Period: periodBody{s.Period.Start, s.Period.End}, AnchorDay: s.AnchorDay,
	}
	if s.NextAnchor != 0 {
		body.NextAnchorDay = &s.NextAnchor
	}
	if s.Next != nil {
		body.Next = &nextBody{s.Next.Plan.From, newTermsBody(s.Next.Plan, s.Next.Terms)}
	}
	return body
}

// subscribeBody is a requested subscription. Absent fields get the
// tier's value; suspended and anchor_day keep theirs.
type subscribeBody struct {
	Tier              string `json:"tier"`
	Effective         string `json:"effective"`
	Quota             *int64 `json:"quota"`
	RequestsPerMinute *int   `json:"requests_per_minute"`
	OnExhausted       string `json:"on_exhausted"`
	OverageCap        *int64 `json:"overage_cap"`
	Suspended         *bool  `json:"suspended"`
	AnchorDay         *int   `json:"anchor_day"`
}

func (b subscribeBody) wanted() (ledger.Subscription, error) {
	wanted := ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Tier(b.Tier), Overage: b.OnExhausted == overage}, Effective: b.Effective,
		Suspended: b.Suspended, AnchorDay: b.AnchorDay,
	}
	if b.OnExhausted != "" && b.OnExhausted != refuse && b.OnExhausted != overage {
		return wanted, ledger.Invalid{Field: "on_exhausted", Detail: "on_exhausted is neither refuse nor overage.", Fix: "Use one of them."}
	}
	for _, given := range []struct {
		field string
		value *int64
		into  *int64
	}{{"quota", b.Quota, &wanted.Plan.Quota}, {"overage_cap", b.OverageCap, &wanted.Plan.OverageCap}} {
		if given.value == nil {
			continue
		}
		if *given.into = *given.value; *given.value == 0 {
			return wanted, ledger.Invalid{Field: given.field, Detail: given.field + " is 0.", Fix: "Use a whole number from 1 on, or leave it out."}
		}
	}
	if b.RequestsPerMinute != nil {
		if wanted.Plan.RequestsPerMinute = *b.RequestsPerMinute; *b.RequestsPerMinute == 0 {
			return wanted, ledger.Invalid{Field: "requests_per_minute", Detail: "requests_per_minute is 0.", Fix: "Use a whole number from 1 on, or set suspended."}
		}
	}
	return wanted, nil
}

// subscription answers with the current plan and the next.
func (a *API) subscription(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Plans.Subscription(r.Context(), organization)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newSubscriptionBody(found))
	return nil
}

// subscribe changes an organization's subscription.
func (a *API) subscribe(w http.ResponseWriter, r *http.Request) error {
	var body subscribeBody
	organization, request, err := requestWith(w, r, &body)
	if err != nil {
		return err
	}
	wanted, err := body.wanted()
	if err != nil {
		return answer(err, organization)
	}
	made, err := a.Plans.Subscribe(r.Context(), organization, request, wanted)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newSubscriptionBody(made))
	return nil
}
