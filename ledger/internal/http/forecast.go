package http

import (
	"context"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func forecastOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/forecast",
			Handle: reads(func(ctx context.Context, organization string) (forecasts.Forecast, error) {
				return a.Forecasts.Forecast(ctx, organization)
			}, newForecastBody),
			ID: "getForecast", Scopes: []string{ScopeRead},
			Summary: "What the running period is going to come to",
			Description: "Of the last 28 complete days (UTC): each coming day is expected to use the mean of its weekday, or, where there are " +
				"fewer, the mean of the days since the first use. The interval holds with the confidence given if days are " +
				"independent and vary around that as they did. Fewer than 3 days: no forecast.",
			Query:  struct{}{},
			Answer: openapi.Answer{Type: forecastBody{}},
		},
	}
}

type forecastBody struct {
	Organization string     `json:"organization"`
	Period       periodBody `json:"period"`
	Used         int64      `json:"used" description:"So far"`
	Method       *string    `json:"method" enum:"weekday_mean,mean" description:"null: too little is known"`
	Confidence   float64    `json:"confidence"`
	Days         int        `json:"days" description:"That it looks back on"`
	PerDay       int64      `json:"per_day" description:"Their mean"`
	UsedAtEnd    *rangeBody `json:"used_at_end"`
	ExhaustedOn  *dayRange  `json:"exhausted_on" description:"The day (UTC) on which nothing more is accepted"`
	AsOf         asOfBody   `json:"as_of"`
}

type rangeBody struct {
	Low      int64 `json:"low"`
	Expected int64 `json:"expected"`
	High     int64 `json:"high"`
}

// A dayRange has null for what does not happen in the period.
type dayRange struct {
	Earliest *string `json:"earliest" format:"date" description:"At the upper end of the interval"`
	Expected *string `json:"expected" format:"date" description:"null: not until the period's end, like the others"`
	Latest   *string `json:"latest" format:"date" description:"At the lower end of the interval"`
}

func newForecastBody(f forecasts.Forecast) forecastBody {
	b := f.Balance
	body := forecastBody{
		Organization: b.Organization.ID, Period: periodBody{b.Book.Period.Start, b.Book.Period.End}, Used: b.Book.Used(),
		Confidence: ledger.ForecastConfidence, Days: f.Days, PerDay: f.PerDay, AsOf: asOfBody{b.At, b.Applied},
	}
	if f.Method != "" {
		used := rangeBody(f.Used)
		body.Method, body.UsedAtEnd = &f.Method, &used
		body.ExhaustedOn = &dayRange{dayText(f.Runs.Earliest), dayText(f.Runs.Expected), dayText(f.Runs.Latest)}
	}
	return body
}

// dayText formats a day; nil for none.
func dayText(day time.Time) *string {
	if day.IsZero() {
		return nil
	}
	text := day.Format(time.DateOnly)
	return &text
}

func dryRunOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations/{organization}/dry-run", Handle: asks(a.dryRun, newDryRunBody), ID: "dryRun", Scopes: []string{ScopeRead},
			Summary:     "What would become of a request",
			Description: "Changes nothing. What a replica of ingest decides may differ by what was accepted since as_of.",
			Body:        openapi.Body{Type: tryBody{}},
			Answer:      openapi.Answer{Type: dryRunBody{}},
		},
	}
}

// tryBody is a possible request: its bytes and its spenders.
type tryBody struct {
	Bytes   int64  `json:"bytes" required:"true" minimum:"1" description:"What it would be charged"`
	Project string `json:"project" maxLength:"64" description:"Whose budget it would use. Left out, like key: no budget is looked at"`
	Key     string `json:"key" maxLength:"64" description:"The id of the API key whose budget it would use"`
}

type dryRunBody struct {
	Organization string          `json:"organization"`
	Bytes        int64           `json:"bytes"`
	Accepted     bool            `json:"accepted"`
	Code         string          `json:"code,omitempty" enum:"quota_exceeded" description:"Of the answer that the request would get; left out: it would be accepted"`
	Rule         *string         `json:"rule" enum:"suspended,exhausted,quota,budget" description:"By which it would be refused. exhausted: an earlier request needed more than was left, and everything is refused since; budget: that of its project or key does not cover it; null: it would be accepted"`
	Covered      int64           `json:"covered" description:"Of its bytes, by the allowance and grants"`
	Overage      int64           `json:"overage" description:"Of its bytes, by nothing"`
	Remaining    int64           `json:"remaining" description:"Of the allowance and grants, afterwards"`
	Exhausts     bool            `json:"exhausts" description:"Nothing more would be accepted afterwards"`
	EndsAt       time.Time       `json:"ends_at" description:"When the period ends"`
	EndedBy      *resolutionBody `json:"ended_by" description:"What would have it accepted before the period ends; null where it would be, the organization is suspended, or a budget refuses it"`
	Budget       *budgetBody     `json:"budget" description:"That would refuse it, where the rule is budget"`
	AsOf         asOfBody        `json:"as_of"`
}

// codeQuotaExceeded is the code with which ingest refuses a request,
// whatever the rule.
const codeQuotaExceeded = "quota_exceeded"

func newDryRunBody(t forecasts.DryRun) dryRunBody {
	b := t.Balance
	body := dryRunBody{
		Organization: b.Organization.ID, Bytes: t.Bytes, Accepted: t.Rule == "", Covered: t.Covered, Overage: t.Overage, Remaining: t.Remaining,
		Exhausts: t.Exhausts, EndsAt: b.Book.Period.End, AsOf: asOfBody{b.At, b.Applied},
	}
	if t.Rule != "" {
		body.Code, body.Rule = codeQuotaExceeded, &t.Rule
	}
	if t.Budget != (ledger.Budget{}) {
		budget := newBudgetBody(t.Budget, b.Book.Period.End)
		body.Budget = &budget
	}
	if t.Resolution != nil {
		resolution := newResolutionBody(*t.Resolution)
		body.EndedBy = &resolution
	}
	return body
}

func newResolutionBody(r ledger.Resolution) resolutionBody {
	body := resolutionBody{Grant: r.Grant, Tiers: []string{}}
	for _, tier := range r.Tiers {
		body.Tiers = append(body.Tiers, string(tier))
	}
	return body
}

// dryRun returns the outcome of a request.
func (a *API) dryRun(ctx context.Context, organization string, body tryBody) (found forecasts.DryRun, err error) {
	if body.Bytes < 1 || body.Bytes > ledger.MaxCharge {
		return found, httpapi.Invalid("/bytes", httpapi.CodeInvalidRequest, "bytes is outside of what a request can be charged.", "Use a whole number from 1 on.")
	}
	return a.Forecasts.Try(ctx, organization, forecasts.Request(body))
}

func simulationOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route:  "POST /v1/organizations/{organization}/simulation",
			Handle: asks(a.simulate, newSimulationBody), ID: "simulateSubscription", Scopes: []string{ScopeRead},
			Summary: "What another subscription would change, and would have made of the last 12 periods",
			Description: "Changes nothing. before and after are of now, grants included; a change at the period's end stands in next. Past " +
				"periods are simulated by days and without grants: what a day would have had refused is a part of that day.",
			Body:   openapi.Body{Type: planBody{}},
			Answer: openapi.Answer{Type: simulationBody{}},
		},
	}
}

type simulationBody struct {
	Before  simulatedState    `json:"before"`
	After   simulatedState    `json:"after"`
	Periods []simulatedPeriod `json:"periods" description:"The running one first"`
}

// A simulatedState is a subscription and the running period under it.
type simulatedState struct {
	Subscription subscriptionBody `json:"subscription"`
	Granted      int64            `json:"granted" description:"In the running period"`
	Remaining    int64            `json:"remaining"`
}

type simulatedPeriod struct {
	Period      periodBody `json:"period"`
	Used        int64      `json:"used" description:"As it was"`
	Quota       int64      `json:"quota" description:"Of the plan"`
	Covered     int64      `json:"covered"`
	Overage     int64      `json:"overage"`
	Refused     int64      `json:"refused" description:"What would not have been accepted"`
	ExhaustedOn *string    `json:"exhausted_on" format:"date" description:"The day (UTC) from which on something would have been refused"`
}

func newSimulationBody(s forecasts.Simulation) simulationBody {
	body := simulationBody{
		Before:  simulatedState{newSubscriptionBody(s.Before), s.Granted[0], s.Remaining[0]},
		After:   simulatedState{newSubscriptionBody(s.After), s.Granted[1], s.Remaining[1]},
		Periods: []simulatedPeriod{},
	}
	for _, p := range s.Periods {
		period := periodBody{p.Period.Start, p.Period.End}
		body.Periods = append(body.Periods, simulatedPeriod{period, p.Used, p.Quota, p.Covered, p.Overage, p.Refused, dayText(p.Runs)})
	}
	return body
}

// simulate returns a subscription's effect now and on past periods.
func (a *API) simulate(ctx context.Context, organization string, body subscribeBody) (found forecasts.Simulation, err error) {
	wanted, err := body.wanted()
	if err == nil && body.Suspended != nil {
		err = ledger.Invalid{Field: "suspended", Detail: "A suspension can't be simulated: nothing would be accepted.", Fix: "Leave it out."}
	}
	if err != nil {
		return found, err
	}
	return a.Forecasts.Simulate(ctx, organization, wanted)
}
