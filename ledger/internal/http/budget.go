package http

import (
	"context"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type removeBudgetQuery struct {
	Project string `query:"project" maxLength:"64" description:"Either this or key"`
	Key     string `query:"key" maxLength:"64" description:"The id of an API key"`
}

func budgetOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/budgets",
			Handle: reads(func(ctx context.Context, organization string) (budgets.Budgets, error) {
				return a.Budgets.List(ctx, organization)
			}, newBudgetList),
			ID: "listBudgets", Scopes: []string{ScopeRead},
			Summary: "What projects and keys may use of each period, and have used",
			Query:   struct{}{},
			Answer:  openapi.Answer{Type: budgetListBody{}},
		},
		{
			Route:  "PUT /v1/organizations/{organization}/budgets",
			Handle: changes(http.StatusOK, a.setBudgets, newBudgetList), ID: "setBudgets", Scopes: []string{ScopeWrite},
			Summary: "Have these budgets and no others",
			Description: "A budget that is new counts what its project or key has used of the running period. Requests beyond it are refused " +
				"with quota_exceeded; those of other projects and keys go on.",
			Headers:  idempotent{},
			Body:     openapi.Body{Type: []setBudgetBody{}, MaxItems: ledger.MaxBudgets},
			Answer:   openapi.Answer{Type: budgetListBody{}},
			Problems: limitReached(),
		},
		{
			Route: "DELETE /v1/organizations/{organization}/budgets", Handle: a.removeBudget, ID: "removeBudget", Scopes: []string{ScopeWrite},
			Summary:     "Have no budget of a project or key",
			Description: "Where there is none that stays so.",
			Query:       removeBudgetQuery{},
			Headers:     idempotent{},
			Answer:      openapi.Answer{Type: budgetListBody{}},
			Problems:    limitReached(),
		},
	}
}

type budgetBody struct {
	Project   *string   `json:"project" description:"Whose it is; null: it is that of a key"`
	Key       *string   `json:"key" description:"The id of the API key whose it is; null: it is that of a project"`
	Bytes     int64     `json:"bytes" description:"How much of each period it may use"`
	Used      int64     `json:"used" description:"Charged of what was accepted in this period"`
	Remaining int64     `json:"remaining"`
	State     string    `json:"state" enum:"active,exhausted" description:"exhausted: its requests are refused with quota_exceeded until the period ends or the budget is raised"`
	ResetsAt  time.Time `json:"resets_at" description:"When the next period begins"`
}

func newBudgetBody(b ledger.Budget, resets time.Time) budgetBody {
	body := budgetBody{Bytes: b.Bytes, Used: b.Used, Remaining: b.Remaining(), State: ledger.Active, ResetsAt: resets}
	if b.IsExhausted() {
		body.State = ledger.Exhausted
	}
	if b.Key != "" {
		body.Key = &b.Key
	} else {
		body.Project = &b.Project
	}
	return body
}

// budgetListBody is all budgets of an organization.
type budgetListBody struct {
	Items []budgetBody `json:"items"`
	httpapi.OnePage
}

func newBudgetList(found budgets.Budgets) budgetListBody {
	list := budgetListBody{Items: make([]budgetBody, len(found.Budgets))}
	for i, budget := range found.Budgets {
		list.Items[i] = newBudgetBody(budget, found.Period.End)
	}
	return list
}

// setBudgetBody is one of the budgets to set.
type setBudgetBody struct {
	Project string `json:"project" maxLength:"64" description:"Either this or key"`
	Key     string `json:"key" maxLength:"64" description:"The id of an API key"`
	Bytes   int64  `json:"bytes" required:"true" minimum:"1" description:"Of each period"`
}

// setBudgets replaces an organization's budgets by those of the body.
func (a *API) setBudgets(ctx context.Context, organization string, request unitofwork.Request, body []setBudgetBody) (found budgets.Budgets, err error) {
	if body == nil {
		return found, httpapi.Invalid("", httpapi.CodeInvalidRequest, "The body is null.", "Send the list of budgets; [] removes all.")
	}
	specs := make([]ledger.BudgetSpec, len(body))
	for i, b := range body {
		specs[i] = ledger.BudgetSpec{Spender: ledger.Spender{Project: b.Project, Key: b.Key}, Bytes: b.Bytes}
	}
	return a.Budgets.SetAll(ctx, organization, request, specs)
}

// removeBudget removes the budget of the query's project or key.
func (a *API) removeBudget(w http.ResponseWriter, r *http.Request) error {
	organization, request, err := requestOf(r)
	if err != nil {
		return err
	}
	of := ledger.Spender{Project: r.URL.Query().Get("project"), Key: r.URL.Query().Get("key")}
	made, err := a.Budgets.Remove(r.Context(), organization, request, of)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newBudgetList(made))
	return nil
}

func thresholdOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/thresholds",
			Handle: reads(func(ctx context.Context, organization string) (thresholdsBody, error) {
				found, err := a.Services.Plans.Thresholds(ctx, organization)
				return newThresholdsBody(organization, found), err
			}, itself),
			ID: "getThresholds", Scopes: []string{ScopeRead},
			Summary: "What is announced when it is reached",
			Query:   struct{}{},
			Answer:  openapi.Answer{Type: thresholdsBody{}},
		},
		{
			Route:  "PUT /v1/organizations/{organization}/thresholds",
			Handle: changes(http.StatusOK, a.setThresholds, itself), ID: "setThresholds", Scopes: []string{ScopeWrite},
			Summary:     "Have other thresholds announced",
			Description: "What of the running period has been reached by now, and lies above what was announced, is announced at once.",
			Headers:     idempotent{},
			Body:        openapi.Body{Type: thresholdsSpecBody{}},
			Answer:      openapi.Answer{Type: thresholdsBody{}},
		},
	}
}

type thresholdsBody struct {
	Organization string `json:"organization"`
	Percents     []int  `json:"percents" minimum:"1" maximum:"1000" maxItems:"10" description:"Shares of the allowance and of budgets that are announced when they are reached, once in a period"`
	Own          bool   `json:"own" description:"They are the organization's own; else those of the installation"`
}

func newThresholdsBody(organization string, t plans.Thresholds) thresholdsBody {
	return thresholdsBody{Organization: organization, Percents: append([]int{}, t.Percents...), Own: t.Own}
}

// thresholdsSpecBody is null for the installation's thresholds, and
// empty for none.
type thresholdsSpecBody struct {
	Percents *[]int `json:"percents" required:"true" nullable:"true" minimum:"1" maximum:"1000" maxItems:"10" description:"In percent, growing. Empty: none; null: those of the installation"`
}

func (a *API) setThresholds(ctx context.Context, organization string, request unitofwork.Request, body thresholdsSpecBody) (thresholdsBody, error) {
	var percents []int
	if body.Percents != nil {
		percents = append([]int{}, *body.Percents...)
	}
	made, err := a.Services.Plans.SetThresholds(ctx, organization, request, percents)
	return newThresholdsBody(organization, made), err
}
