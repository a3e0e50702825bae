package http

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/httpapi"
)

// statementTotals is a statement in a list.
type statementTotals struct {
	ID           string     `json:"id"` // the number, as text
	Organization string     `json:"organization"`
	Number       int64      `json:"number"`
	Test         bool       `json:"test"`
	Period       periodBody `json:"period"`
	MadeAt       time.Time  `json:"made_at"`
	statementTerms
	Opening   int64      `json:"opening"`
	Allowance int64      `json:"allowance"`
	Prorated  int64      `json:"prorated"`
	Granted   int64      `json:"granted"`
	Consumed  int64      `json:"consumed"`
	Overage   int64      `json:"overage"`
	Overshoot int64      `json:"overshoot"`
	Expired   int64      `json:"expired"`
	Voided    int64      `json:"voided"`
	Closing   int64      `json:"closing"`
	Adjusted  int64      `json:"adjusted"` // given back, or below zero charged
	Chain     *chainBody `json:"chain"`    // null: the organization had no link yet
	Previous  string     `json:"previous"` // hash of the statement before; zeros for the first
	Hash      string     `json:"hash"`
}

// statementTerms are the terms at the end of a statement's period.
type statementTerms struct {
	Tier              string `json:"tier"`
	Quota             int64  `json:"quota"`
	RequestsPerMinute int    `json:"requests_per_minute"`
	OnExhausted       string `json:"on_exhausted"`
	OverageCap        *int64 `json:"overage_cap"` // null: no cap or no overage
}

// chainBody is the last link of a chain.
type chainBody struct {
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"`
}

type statementBody struct {
	statementTotals
	Grants      []movementBody   `json:"grants"`
	ChargedBy   []string         `json:"charged_by"`
	Charges     []dayChargeBody  `json:"charges"`
	ByProject   []projectBody    `json:"by_project"`
	Late        []lateBody       `json:"late"`
	Adjustments []adjustmentLine `json:"adjustments"`
}

type movementBody struct {
	Grant   string `json:"grant"`
	Opening int64  `json:"opening"`
	Issued  int64  `json:"issued"`
	Used    int64  `json:"used"`
	Expired int64  `json:"expired"`
	Voided  int64  `json:"voided"`
	Closing int64  `json:"closing"`
}

type dayChargeBody struct {
	Day         string `json:"day"`
	Project     string `json:"project"`
	Environment string `json:"environment"`
	Requests    int64  `json:"requests"`
	Entries     int64  `json:"entries"`
	Bytes       int64  `json:"bytes"`
}

// projectBody is what a project was charged.
type projectBody struct {
	Project  string `json:"project"`
	Requests int64  `json:"requests"`
	Entries  int64  `json:"entries"`
	Bytes    int64  `json:"bytes"`
}

type lateBody struct {
	OfPeriod time.Time `json:"of_period"`
	Bytes    int64     `json:"bytes"`
}

type adjustmentLine struct {
	ID       string    `json:"id"`
	OfPeriod time.Time `json:"of_period"`
	Amount   int64     `json:"amount"`
}

func newStatementTotals(s ledger.Statement) statementTotals {
	t := s.Totals
	body := statementTotals{
		ID: strconv.FormatInt(s.Number, 10), Organization: s.Organization, Number: s.Number, Test: s.Test,
		Period: periodBody{s.Period.Start, s.Period.End}, MadeAt: s.Made, statementTerms: newStatementTerms(s.StatementTerms),
		Opening: t.Opening, Allowance: t.Allowance, Prorated: t.Prorated, Granted: t.Granted, Consumed: t.Consumed, Overage: t.Overage, Overshoot: t.Overshoot,
		Expired: t.Expired, Voided: t.Voided, Closing: t.Closing, Adjusted: s.Adjusted(), Previous: hexOf(s.Previous), Hash: hexOf(s.Hash),
	}
	if s.Chain.Sequence > 0 {
		body.Chain = &chainBody{s.Chain.Sequence, hexOf(s.Chain.Hash)}
	}
	return body
}

func newStatementTerms(t ledger.StatementTerms) statementTerms {
	body := statementTerms{Tier: string(t.Tier), Quota: t.Quota, RequestsPerMinute: t.RequestsPerMinute, OnExhausted: onExhausted(t.Overage)}
	if t.OverageCap > 0 {
		body.OverageCap = &t.OverageCap
	}
	return body
}

func newStatementBody(s ledger.Statement) statementBody {
	body := statementBody{
		statementTotals: newStatementTotals(s), ChargedBy: s.ChargedBy,
		Grants: []movementBody{}, Charges: []dayChargeBody{}, ByProject: []projectBody{}, Late: []lateBody{}, Adjustments: []adjustmentLine{},
	}
	for _, g := range s.Grants {
		body.Grants = append(body.Grants, movementBody(g))
	}
	for _, c := range s.Charges {
		body.Charges = append(body.Charges, dayChargeBody{c.Day.Format(time.DateOnly), c.Project, c.Environment, c.Requests, c.Entries, c.Bytes})
	}
	for _, p := range s.ByProject() {
		body.ByProject = append(body.ByProject, projectBody{p.Project, p.Requests, p.Entries, p.Bytes})
	}
	for _, l := range s.Late {
		body.Late = append(body.Late, lateBody{l.Of, l.Bytes})
	}
	for _, a := range s.Adjustments {
		body.Adjustments = append(body.Adjustments, adjustmentLine{a.ID, a.Of, a.Bytes})
	}
	return body
}

// statementPlace is where a list of statements continues.
type statementPlace struct {
	Number int64 `json:"n"`
}

// statements lists an organization's statements, the latest first.
func (a *API) statements(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil, "limit", "cursor"); err != nil {
		return err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	var before statementPlace
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(r, page.Cursor, &before); err != nil {
			return err
		}
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Statements.List(r.Context(), organization, before.Number, page.Limit+1)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteList(w, r, found, page.Limit, newStatementTotals, func(s ledger.Statement) statementPlace { return statementPlace{s.Number} })
	return nil
}

// statement answers with one statement, as JSON, CSV or a page.
func (a *API) statement(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	text := chi.URLParam(r, "statement")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return httpapi.NotFound("statement", text)
	}
	found, err := a.Statements.Statement(r.Context(), organization, number)
	if err != nil {
		return answer(err, organization)
	}
	switch httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeCSV, httpapi.TypeHTML) {
	case httpapi.TypeCSV:
		return statementExport(found).write(w, httpapi.TypeCSV)
	case httpapi.TypeHTML:
		a.StatementPage(w, r, found)
		return nil
	}
	httpapi.WriteJSON(w, http.StatusOK, newStatementBody(found))
	return nil
}

func statementExport(s ledger.Statement) export[[]string] {
	return export[[]string]{
		pages:   func(yield func([][]string, error) bool) { yield(s.Table(), nil) },
		columns: ledger.StatementColumns(), cells: func(line []string) []string { return line },
	}
}
