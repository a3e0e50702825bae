package http

import (
	"context"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func subscriptionOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/subscription",
			Handle: reads(func(ctx context.Context, organization string) (plans.Subscription, error) {
				return a.Plans.Subscription(ctx, organization)
			}, newSubscriptionBody),
			ID: "getSubscription", Scopes: []string{ScopeRead},
			Summary: "What an organization subscribes to, and what comes next",
			Query:   struct{}{},
			Answer:  openapi.Answer{Type: subscriptionBody{}},
		},
		{
			Route:  "PUT /v1/organizations/{organization}/subscription",
			Handle: changes(http.StatusOK, a.subscribe, newSubscriptionBody), ID: "putSubscription", Scopes: []string{ScopeWrite},
			Summary:     "Change what an organization subscribes to",
			Description: "The plan is set whole, and takes the place of one that was scheduled: what is in force, sent again, cancels that.",
			Headers:     idempotent{},
			Body:        openapi.Body{Type: subscribeBody{}},
			Answer:      openapi.Answer{Type: subscriptionBody{}},
			Problems:    limitReached(),
		},
	}
}

// Values for requests beyond the quota.
const (
	refuse  = "refuse"
	overage = "overage"
)

// termsBody is the terms of a plan.
type termsBody struct {
	Tier              string `json:"tier" enum:"indie,bootstrapper,compliance,scale"`
	Quota             int64  `json:"quota" description:"Bytes per period"`
	RequestsPerMinute int    `json:"requests_per_minute"`
	RetentionDays     int    `json:"retention_days" description:"For how long what is accepted is kept"`
	OnExhausted       string `json:"on_exhausted" enum:"refuse,overage" description:"Beyond the quota, requests are refused, or accepted and charged as overage"`
	OverageCap        *int64 `json:"overage_cap" description:"The most overage of a period, in bytes; null: as much as comes, or none where requests are refused"`
}

type subscriptionBody struct {
	Organization string `json:"organization"`
	termsBody
	Suspended     bool       `json:"suspended" description:"Whether nothing is accepted"`
	State         string     `json:"state" enum:"active,exhausted,suspended"`
	Since         time.Time  `json:"since" description:"When the plan came into force"`
	Period        periodBody `json:"period"`
	AnchorDay     int        `json:"anchor_day" minimum:"1" maximum:"31" description:"The day of the month on which periods begin; shorter months have their last day instead"`
	NextAnchorDay *int       `json:"next_anchor_day" description:"The anchor day from the end of the running period on; null: as it is"`
	Next          *nextBody  `json:"next" description:"The plan that comes into force at its instant; null: none is scheduled"`
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

// planBody is a requested plan. Absent fields get the tier's value.
type planBody struct {
	Tier              string `json:"tier" required:"true" enum:"indie,bootstrapper,compliance,scale"`
	Effective         string `json:"effective" enum:"now,period_end" description:"Left out: now where the plan allows as many bytes as the one in force, else at the period's end. Now, a larger plan adds what it allows more for the rest of the period, rounded up to a byte; a smaller one can't take effect now"`
	Quota             *int64 `json:"quota" description:"Bytes per period; left out: the tier's"`
	RequestsPerMinute *int   `json:"requests_per_minute" description:"Left out: the tier's"`
	OnExhausted       string `json:"on_exhausted" enum:"refuse,overage" description:"Beyond the quota, requests are refused, or accepted and charged as overage"`
	OverageCap        *int64 `json:"overage_cap" description:"The most overage of a period; left out: as much as comes"`
}

// subscribeBody is a requested subscription. Suspended and
// anchor_day keep their value if they are absent.
type subscribeBody struct {
	planBody
	Suspended *bool `json:"suspended" description:"At once; left out: as it is"`
	AnchorDay *int  `json:"anchor_day" nullable:"true" minimum:"1" maximum:"31" description:"From the end of the running period on. The first period by it is a part of one, with that part of the quota. Left out: as it is"`
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

// subscribe changes an organization's subscription.
func (a *API) subscribe(ctx context.Context, organization string, request unitofwork.Request, body subscribeBody) (made plans.Subscription, err error) {
	wanted, err := body.wanted()
	if err != nil {
		return made, err
	}
	return a.Plans.Subscribe(ctx, organization, request, wanted)
}
