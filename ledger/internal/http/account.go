package http

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

type accountsQuery struct {
	Containing string `query:"q" description:"A part of the organization's id"`
	State      string `query:"state" enum:"active,exhausted,suspended" description:"Only those in this state. A page may end before it is full, and go on by its cursor"`
	httpapi.Page
}

func accountOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/accounts", Handle: a.accounts, ID: "listAccounts", Scopes: []string{ScopeRead},
			Summary: "The accounts of all organizations by their ids, with an operator's token",
			Query:   accountsQuery{},
			Answer:  openapi.Answer{Type: httpapi.List[accountBody]{}},
		},
	}
}

type accountBody struct {
	Organization string     `json:"organization" description:"Its id"`
	Test         bool       `json:"test" description:"A test organization, with a test clock: nobody owes anything"`
	Tier         string     `json:"tier" enum:"indie,bootstrapper,compliance,scale"`
	State        string     `json:"state" enum:"active,exhausted,suspended"`
	Period       periodBody `json:"period"`
	Granted      int64      `json:"granted" description:"Bytes granted in the period"`
	Consumed     int64      `json:"consumed" description:"Bytes used of what was granted"`
	Remaining    int64      `json:"remaining" description:"Bytes left"`
	Overage      int64      `json:"overage" description:"Bytes used beyond what was granted"`
	Overshoot    int64      `json:"overshoot" description:"Accepted beyond what the plan allows, by replicas that did not know of each other: the operator's, charged to nobody. 0 as a rule"`
	LastActivity *time.Time `json:"last_activity" description:"The hour in which it sent anything last, accepted or not; the day, where hours are not kept that long; null: never, or longer ago than usage is kept"`
}

func newAccountBody(a accounts.Account) accountBody {
	body := accountBody{
		Organization: a.Organization.ID, Test: a.Organization.IsTest(), Tier: string(a.Plan.Tier), State: a.State(),
		Period:  periodBody{a.Book.Period.Start, a.Book.Period.End},
		Granted: a.Book.Granted(), Consumed: a.Book.Balances[ledger.Consumed], Remaining: a.Book.Remaining(),
		Overage: a.Book.Balances[ledger.Overage], Overshoot: a.Book.Balances[ledger.Overshoot],
	}
	if !a.LastActivity.IsZero() {
		body.LastActivity = &a.LastActivity
	}
	return body
}

// accountPlace is where a list of accounts continues.
type accountPlace struct {
	After string `json:"a"`
}

// accounts lists the accounts of all organizations, for operators.
func (a *API) accounts(w http.ResponseWriter, r *http.Request) error {
	if identity.FromContext(r.Context()).Organization != "" {
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden, "Only an operator's token sees all organizations.")
	}
	query := accounts.AccountQuery{Containing: r.URL.Query().Get("q"), State: r.URL.Query().Get("state")}
	if query.State != "" && !slices.Contains([]string{ledger.Active, ledger.Exhausted, ledger.Suspended}, query.State) {
		return httpapi.Invalid("?state", httpapi.CodeInvalidRequest, "There is no such state.", "Use active, exhausted or suspended.")
	}
	page, err := placeOf[accountPlace](r)
	if err != nil {
		return err
	}
	query.After, query.Limit = page.after.After, page.limit
	found, next, err := a.Accounts.List(r.Context(), query)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, accountList(r, found, next))
	return nil
}

// accountList returns a page. One that stopped at the scan limit continues too.
func accountList(r *http.Request, found []accounts.Account, next string) httpapi.List[accountBody] {
	list := httpapi.List[accountBody]{Items: make([]accountBody, len(found))}
	for i, account := range found {
		list.Items[i] = newAccountBody(account)
	}
	if next != "" {
		cursor := httpapi.EncodeCursor(r, accountPlace{next})
		list.NextCursor = &cursor
	}
	return list
}
