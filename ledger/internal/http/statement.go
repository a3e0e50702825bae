package http

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func statementOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/statements",
			Handle: lists(placeOf, func(ctx context.Context, organization string, page page[statementPlace]) ([]ledger.Statement, error) {
				return a.Statements.List(ctx, organization, page.after.Number, page.limit+1)
			}, newStatementTotals, func(s ledger.Statement) statementPlace { return statementPlace{s.Number} }),
			ID: "listStatements", Scopes: []string{ScopeRead},
			Summary:     "The statements of an organization, the latest first",
			Description: "A statement is made when a period closes, a minute behind its end at the soonest, and never changes.",
			Query:       httpapi.Page{},
			Answer:      openapi.Answer{Type: httpapi.List[statementTotals]{}},
		},
		{
			Route: "GET /v1/organizations/{organization}/statements/{statement}", Handle: a.statement, ID: "getStatement", Scopes: []string{ScopeRead},
			Summary:     "What a closed period came to",
			Description: "A statement's id is its number.",
			Query:       struct{}{},
			Answer: openapi.Answer{Type: statementBody{}, Texts: []openapi.Text{
				{Media: httpapi.TypeCSV, Description: "A head and lines: statement, line, day, project, environment, subject, of_period, requests, entries, " +
					"bytes. line is the name of a total, grant_… with the grant as subject, adjustment, late or charge"},
				{Media: httpapi.TypeHTML, Description: "A page that prints"},
			}},
		},
	}
}

// statementTotals is a statement in a list.
type statementTotals struct {
	ID           string     `json:"id" description:"Of the statement: its number, as text"`
	Organization string     `json:"organization"`
	Number       int64      `json:"number" description:"1 for the first, and so on without a gap"`
	Test         bool       `json:"test" description:"A test organization, with a test clock: nobody owes anything"`
	Period       periodBody `json:"period"`
	MadeAt       time.Time  `json:"made_at"`
	statementTerms
	Opening   int64      `json:"opening" description:"Left of grants when the period began. opening + allowance + prorated + granted = consumed + expired + voided + closing"`
	Allowance int64      `json:"allowance" description:"Of the plan"`
	Prorated  int64      `json:"prorated" description:"Of a larger plan, for the rest of the period"`
	Granted   int64      `json:"granted" description:"By grants that began in the period, adjustments included"`
	Consumed  int64      `json:"consumed" description:"Used, and covered"`
	Overage   int64      `json:"overage" description:"Used, and covered by nothing"`
	Overshoot int64      `json:"overshoot" description:"Accepted beyond what the plan allows, by replicas that did not know of each other: the operator's, charged to nobody. 0 as a rule"`
	Expired   int64      `json:"expired" description:"Not used by the time at which it had to be"`
	Voided    int64      `json:"voided" description:"Taken back"`
	Closing   int64      `json:"closing" description:"Left of grants when the period ended; below zero where it used one that was given later, for from before its end"`
	Adjusted  int64      `json:"adjusted" description:"Given back by adjustments of the period; below zero: charged"`
	Chain     *chainBody `json:"chain" description:"The last link of the organization's chain when the statement was made; null: there was none yet"`
	Previous  string     `json:"previous" description:"hash of the statement before; zeros for the first"`
	Hash      string     `json:"hash" description:"SHA-256 of this statement and of previous, in hexadecimal. Keep it: as long as it is the same, this statement and all before it are unchanged"`
}

// statementTerms are the terms at the end of a statement's period.
type statementTerms struct {
	Tier              string `json:"tier" description:"At the period's end"`
	Quota             int64  `json:"quota" description:"Of the plan of then, in bytes, as all sizes"`
	RequestsPerMinute int    `json:"requests_per_minute" description:"Of the plan of then"`
	OnExhausted       string `json:"on_exhausted" enum:"refuse,overage" description:"What happened beyond the allowance by the plan of then"`
	OverageCap        *int64 `json:"overage_cap" description:"Most overage of the period; null: no cap, or no overage"`
}

// chainBody is the last link of a chain.
type chainBody struct {
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash" description:"SHA-256, in hexadecimal"`
}

type statementBody struct {
	statementTotals
	Grants      []movementBody   `json:"grants"`
	ChargedBy   []string         `json:"charged_by" description:"What charges are split by, beside days: project and environment; less where these would be more than 10,000"`
	Charges     []dayChargeBody  `json:"charges" description:"What was accepted in the period, by day (UTC). consumed + overage + overshoot is the sum of charges, late, and adjustments below zero"`
	ByProject   []projectBody    `json:"by_project" description:"charges, added up by project"`
	Late        []lateBody       `json:"late" description:"What was accepted in periods that were closed before it came"`
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
	Day         string `json:"day" format:"date"`
	Project     string `json:"project"`
	Environment string `json:"environment"`
	Requests    int64  `json:"requests"`
	Entries     int64  `json:"entries"`
	Bytes       int64  `json:"bytes"`
}

// projectBody is what a project was charged.
type projectBody struct {
	Project  string `json:"project" description:"Its id; empty where charges are not split by project"`
	Requests int64  `json:"requests"`
	Entries  int64  `json:"entries"`
	Bytes    int64  `json:"bytes"`
}

type lateBody struct {
	OfPeriod time.Time `json:"of_period" description:"Start of the closed period in which it was accepted"`
	Bytes    int64     `json:"bytes"`
}

type adjustmentLine struct {
	ID       string    `json:"id"`
	OfPeriod time.Time `json:"of_period" description:"Start of the period that was wrong"`
	Amount   int64     `json:"amount" description:"Bytes given back, or below zero charged"`
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

// statement answers with one statement, as JSON, CSV or a page.
func (a *API) statement(w http.ResponseWriter, r *http.Request) error {
	organization, err := organizationFromPath(r)
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
