package http

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

type accountBody struct {
	Organization string     `json:"organization"`
	Test         bool       `json:"test"`
	Tier         string     `json:"tier"`
	State        string     `json:"state"`
	Period       periodBody `json:"period"`
	Granted      int64      `json:"granted"`
	Consumed     int64      `json:"consumed"`
	Remaining    int64      `json:"remaining"`
	Overage      int64      `json:"overage"`
	Overshoot    int64      `json:"overshoot"`
	LastActivity *time.Time `json:"last_activity"`
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
	if err := httpapi.OnlyKnown(r, nil, "q", "state", "limit", "cursor"); err != nil {
		return err
	}
	if identity.FromContext(r.Context()).Organization != "" {
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden, "Only an operator's token sees all organizations.")
	}
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	query := accounts.AccountQuery{Containing: r.URL.Query().Get("q"), State: r.URL.Query().Get("state"), Limit: page.Limit}
	if query.State != "" && !slices.Contains([]string{ledger.Active, ledger.Exhausted, ledger.Suspended}, query.State) {
		return httpapi.Invalid("?state", httpapi.CodeInvalidRequest, "There is no such state.", "Use active, exhausted or suspended.")
	}
	var place accountPlace
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(r, page.Cursor, &place); err != nil {
			return err
		}
	}
	query.After = place.After
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
