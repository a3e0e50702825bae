package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/httpapi"
)

type forecastBody struct {
	Organization string     `json:"organization"`
	Period       periodBody `json:"period"`
	Used         int64      `json:"used"`
	Method       *string    `json:"method"` // null: too little is known, and the following are null too
	Confidence   float64    `json:"confidence"`
	Days         int        `json:"days"`
	PerDay       int64      `json:"per_day"`
	UsedAtEnd    *rangeBody `json:"used_at_end"`
	ExhaustedOn  *dayRange  `json:"exhausted_on"`
	AsOf         asOfBody   `json:"as_of"`
}

type rangeBody struct {
	Low      int64 `json:"low"`
	Expected int64 `json:"expected"`
	High     int64 `json:"high"`
}

// A dayRange has null for what does not happen in the period.
type dayRange struct {
	Earliest *string `json:"earliest"`
	Expected *string `json:"expected"`
	Latest   *string `json:"latest"`
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
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
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
