package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func forecastOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/forecast", Handle: a.forecast, ID: "getForecast", Scopes: []string{ScopeRead},
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

// forecast answers with the expected end of the running period.
func (a *API) forecast(w http.ResponseWriter, r *http.Request) error {
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	found, err := a.Forecasts.Forecast(r.Context(), organization)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newForecastBody(found))
	return nil
}
