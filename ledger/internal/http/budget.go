package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/shared/httpapi"
)

type budgetBody struct {
	Project   *string   `json:"project"` // null: a key's
	Key       *string   `json:"key"`     // null: a project's
	Bytes     int64     `json:"bytes"`
	Used      int64     `json:"used"`
	Remaining int64     `json:"remaining"`
	State     string    `json:"state"`
	ResetsAt  time.Time `json:"resets_at"`
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

func writeBudgets(w http.ResponseWriter, found budgets.Budgets) {
	list := httpapi.List[budgetBody]{Items: make([]budgetBody, len(found.Budgets))}
	for i, budget := range found.Budgets {
		list.Items[i] = newBudgetBody(budget, found.Period.End)
	}
	httpapi.WriteJSON(w, http.StatusOK, list)
}

// budgets lists the budgets of an organization and their use.
func (a *API) budgets(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Budgets.List(r.Context(), organization)
	if err != nil {
		return answer(err, organization)
	}
	writeBudgets(w, found)
	return nil
}

// setBudgetBody is one of the budgets to set.
type setBudgetBody struct {
	Project string `json:"project"`
	Key     string `json:"key"`
	Bytes   int64  `json:"bytes"`
}

// setBudgets replaces an organization's budgets by those of the body.
func (a *API) setBudgets(w http.ResponseWriter, r *http.Request) error {
	var body []setBudgetBody
	organization, request, err := requestWith(w, r, &body)
	if err != nil {
		return err
	}
	if body == nil {
		return httpapi.Invalid("", httpapi.CodeInvalidRequest, "The body is null.", "Send the list of budgets; [] removes all.")
	}
	specs := make([]ledger.BudgetSpec, len(body))
	for i, b := range body {
		specs[i] = ledger.BudgetSpec{Spender: ledger.Spender{Project: b.Project, Key: b.Key}, Bytes: b.Bytes}
	}
	made, err := a.Budgets.SetAll(r.Context(), organization, request, specs)
	if err != nil {
		return answer(err, organization)
	}
	writeBudgets(w, made)
	return nil
}

// removeBudget removes the budget of the query's project or key.
func (a *API) removeBudget(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil, "project", "key"); err != nil {
		return err
	}
	organization, request, err := requestOf(r)
	if err != nil {
		return err
	}
	of := ledger.Spender{Project: r.URL.Query().Get("project"), Key: r.URL.Query().Get("key")}
	made, err := a.Budgets.Remove(r.Context(), organization, request, of)
	if err != nil {
		return answer(err, organization)
	}
	writeBudgets(w, made)
	return nil
}
