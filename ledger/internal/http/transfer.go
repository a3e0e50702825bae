package http

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type entriesQuery struct {
	Reason  string `query:"reason" enum:"issued,charged,settled,late,prorated,expired,voided,adjusted" description:"Only with this reason"`
	Project string `query:"project" description:"Only of this project"`
	APIKey  string `query:"api_key" description:"Only of this API key, by its id"`
	Grant   string `query:"grant" description:"Only of this grant, or of the grant of this adjustment"`
	spanQuery
}

func entryOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/entries", Handle: a.transfers, ID: "listEntries", Scopes: []string{ScopeRead},
			Summary: "The postings of an organization, the latest first, as JSON, as lines of it, or as CSV. With reason, project, " +
				"api_key or grant a page may have fewer items than limit, or none, though the list goes on: next_cursor says so",
			Query: entriesQuery{},
			Answer: openapi.Answer{Type: httpapi.List[entryBody]{}, Texts: []openapi.Text{
				{Media: httpapi.TypeLines, Description: "All that matches, or limit items of it: an item on each line"},
				{Media: httpapi.TypeCSV, Description: "The same with a head and a row for each item: id, effective_at, booked_at, period_start, from, to, " +
					"amount, entries, reason, project, api_key, event, grant, of_period"},
			}},
		},
	}
}

type entryBody struct {
	ID          string    `json:"id"`
	EffectiveAt time.Time `json:"effective_at"`
	BookedAt    time.Time `json:"booked_at"`
	PeriodStart time.Time `json:"period_start"`
	From        string    `json:"from" enum:"issuer,grant,consumed,overage,credit,expired,voided,overshoot"`
	To          string    `json:"to" enum:"issuer,grant,consumed,overage,credit,expired,voided,overshoot"`
	Amount      int64     `json:"amount" minimum:"1" description:"Bytes moved"`
	Entries     int       `json:"entries" description:"Log entries paid for"`
	Reason      string    `json:"reason" enum:"issued,charged,settled,late,prorated,expired,voided,adjusted"`
	Project     string    `json:"project,omitempty"`
	APIKey      string    `json:"api_key,omitempty"`
	Event       string    `json:"event" description:"Id of the event that caused it"`
	Grant       string    `json:"grant,omitempty" description:"Id of the grant whose bytes they are"`
	OfPeriod    time.Time `json:"of_period,omitzero" description:"Start of the period that the entry makes good: a closed one whose logs came late, or that of an adjustment"`
}

func newEntryBody(t postgres.BookedTransfer) entryBody {
	return entryBody{
		ID:          fmt.Sprintf("%d-%d-%d-%d", t.Cause.Source, t.Cause.Partition, t.Cause.Offset, t.Line),
		EffectiveAt: t.EffectiveAt, BookedAt: t.BookedAt, PeriodStart: t.Period.Start,
		From: t.From.String(), To: t.To.String(), Amount: t.Amount, Entries: t.Entries, Reason: t.Reason.String(),
		Project: t.Cause.Project, APIKey: t.Cause.Key, Event: t.Cause.Event, Grant: t.Grant, OfPeriod: t.Of,
	}
}

// transfers lists the transfers of an organization, the latest first.
// The API calls them entries.
func (a *API) transfers(w http.ResponseWriter, r *http.Request) error {
	query, err := transferQueryOf(r)
	if err != nil {
		return err
	}
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	if mediaType := httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeLines, httpapi.TypeCSV); mediaType != httpapi.TypeJSON {
		next := func(limit int) ([]postgres.BookedTransfer, bool, error) {
			query.Limit = limit
			found, err := a.Balances.Transfers(r.Context(), organization, query)
			if n := len(found.Transfers); found.Next == nil && n == limit {
				at := found.Transfers[n-1].Cursor()
				found.Next = &at
			}
			if found.Next != nil {
				query.After = *found.Next
			}
			return found.Transfers, found.Next != nil, answer(err, organization)
		}
		return export[postgres.BookedTransfer]{
			pages:   pagesOf(r, query.Limit, next),
			columns: transferColumns,
			cells:   func(t postgres.BookedTransfer) []string { return newEntryBody(t).cells() },
			body:    func(t postgres.BookedTransfer) any { return newEntryBody(t) },
		}.write(w, mediaType)
	}
	limit := query.Limit
	query.Limit++ // one more shows whether the list continues
	found, err := a.Balances.Transfers(r.Context(), organization, query)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteListUpTo(w, r, found.Transfers, limit, found.Next, newEntryBody, postgres.BookedTransfer.Cursor)
	return nil
}

// transferQueryOf parses the query of a request.
func transferQueryOf(r *http.Request) (query postgres.TransferQuery, err error) {
	page, err := pageOf[postgres.TransferCursor](r)
	if err != nil {
		return query, err
	}
	asked := r.URL.Query()
	query = postgres.TransferQuery{From: page.from, To: page.to, After: page.after, Limit: page.limit,
		Project: asked.Get("project"), Key: asked.Get("api_key"), Grant: asked.Get("grant")}
	if !asked.Has("reason") {
		return query, nil
	}
	var known bool
	if query.Reason, known = ledger.ParseReason(asked.Get("reason")); !known {
		return query, httpapi.Invalid("?reason", httpapi.CodeInvalidRequest, fmt.Sprintf("There is no reason %q.", asked.Get("reason")),
			"Use issued, charged, settled, late, prorated, expired, voided or adjusted.")
	}
	return query, nil
}

// transferColumns are the columns of cells.
var transferColumns = []string{"id", "effective_at", "booked_at", "period_start", "from", "to", "amount", "entries", "reason",
	"project", "api_key", "event", "grant", "of_period"}

func (b entryBody) cells() []string {
	of := ""
	if !b.OfPeriod.IsZero() {
		of = b.OfPeriod.Format(time.RFC3339)
	}
	return []string{b.ID, b.EffectiveAt.Format(time.RFC3339Nano), b.BookedAt.Format(time.RFC3339Nano), b.PeriodStart.Format(time.RFC3339),
		b.From, b.To, strconv.FormatInt(b.Amount, 10), strconv.Itoa(b.Entries), b.Reason, b.Project, b.APIKey, b.Event, b.Grant, of}
}
