package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

const budgetsPath = "/console/usage/budgets"

type budgetsPage struct {
	Known   bool // false: the ledger has not consumed the organization's creation yet
	Resets  time.Time
	Budgets []shownBudget
	CanSet  bool // the reader's role permits it
	Setters string
	Of, Key ui.Field
	Size    ui.Field
	Unit    ui.Field
}

// budgetPages show budgets and set them.
type budgetPages struct {
	site
	budgets *budgets.Service
}

// A shownBudget is a budget with its spender's name.
type shownBudget struct {
	ledger.Budget
	Kind, Name string
	PerMille   int64 // used, 0 to 1000
}

// Out reports whether requests are refused.
func (b shownBudget) Out() bool { return b.IsExhausted() }

// High reports whether little is left.
func (b shownBudget) High() bool { return b.PerMille >= 800 }

// Percent is the used part, 0 to 100, rounded down.
func (b shownBudget) Percent() int64 { return b.PerMille / 10 }

var budgetFlashes = map[string]string{
	"budget-set":     "The budget is set. It is in force within a second.",
	"budget-removed": "The budget is removed. Its requests count in the quota alone.",
}

func (p budgetPages) showBudgets(w http.ResponseWriter, r *http.Request) error {
	return p.writeBudgets(w, r, http.StatusOK, budgetForm{unit: "GiB"}, ledger.Invalid{})
}

func (p budgetPages) writeBudgets(w http.ResponseWriter, r *http.Request, status int, form budgetForm, fault ledger.Invalid) error {
	reader := identity.FromContext(r.Context())
	found, err := p.budgets.List(r.Context(), reader.Organization)
	page := budgetsPage{
		Known: !errors.Is(err, ledger.ErrNoOrganization), Resets: found.Period.End, CanSet: identity.RoleSetsBudgets(reader.Role()),
		Setters: strings.Join(identity.RolesThatSetBudgets(), "s, ") + "s",
	}
	if err != nil && page.Known {
		return err
	}
	page.Budgets = p.listBudgets(found.Budgets)
	p.fill(&page, reader.Organization, form, fault)
	p.pages.Write(w, r, status, "budgets", ui.View{Title: "Budgets", Data: page, Flash: ui.TakeFlash(w, r, budgetFlashes)})
	return nil
}

func (s site) listBudgets(budgets []ledger.Budget) (shown []shownBudget) {
	for _, budget := range budgets {
		shown = append(shown, s.showBudget(budget))
	}
	return shown
}

func (s site) showBudget(b ledger.Budget) shownBudget {
	shown := shownBudget{Budget: b, Kind: "API key", Name: b.Key, PerMille: thousandths(b.Used, b.Bytes)}
	if b.Key == "" {
		shown.Kind, shown.Name = "project", s.nameOf(postgres.ByProject, b.Project)
	}
	return shown
}

// fill fills the form of a budget.
func (p budgetPages) fill(page *budgetsPage, organization string, form budgetForm, fault ledger.Invalid) {
	faults := map[string]string{fault.Field: strings.TrimSpace(fault.Detail + " " + fault.Fix)}
	choices := [][2]string{{"", "an API key"}}
	for _, project := range p.directory.Projects(organization) {
		choices = append(choices, [2]string{project.Project, "the project " + project.Name})
	}
	page.Of = ui.Field{Name: "project", Label: "Budget of", Choices: ui.NewChoices(form.project, choices...), Fault: faults["project"]}
	page.Key = ui.Field{Name: "key", Label: "API key", Optional: true, Value: form.key, MaxLength: 64, Autocomplete: "off", Fault: faults["key"],
		Hint: "Its id, as the settings show it, where the budget is of a key."}
	page.Size = ui.Field{Name: "size", Label: "Of each period", Value: form.size, Required: true, MaxLength: 20, Autocomplete: "off", Fault: faults["bytes"],
		Hint: "A number, such as 1.5."}
	page.Unit = ui.Field{Name: "unit", Label: "Unit", Choices: ui.NewChoices(form.unit,
		[2]string{"GiB", "GiB"}, [2]string{"MiB", "MiB"}, [2]string{"KiB", "KiB"}, [2]string{"B", "bytes"})}
}

// A budgetForm holds the fields of a submitted form.
type budgetForm struct{ project, key, size, unit string }

func formOf(r *http.Request) budgetForm {
	return budgetForm{
		project: r.PostForm.Get("project"), key: strings.TrimSpace(r.PostForm.Get("key")),
		size: strings.TrimSpace(r.PostForm.Get("size")), unit: r.PostForm.Get("unit"),
	}
}

// bytesOf are the bytes of each unit of the form.
var bytesOf = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// spec returns the budget of a form.
func (f budgetForm) spec() (ledger.BudgetSpec, error) {
	size, err := strconv.ParseFloat(f.size, 64)
	bytes := size * bytesOf[f.unit]
	if err != nil || !(bytes >= 1 && bytes <= float64(ledger.MaxGrant)) {
		return ledger.BudgetSpec{}, ledger.Invalid{Field: "bytes", Detail: fmt.Sprintf("%q %s is no budget.", f.size, f.unit),
			Fix: "Use a number above zero, such as 1.5."}
	}
	return ledger.BudgetSpec{Spender: ledger.Spender{Project: f.project, Key: f.key}, Bytes: int64(bytes)}, nil
}

// setBudget sets one budget and redirects to the list.
func (p budgetPages) setBudget(w http.ResponseWriter, r *http.Request) error {
	organization, request, err := budgetRequest(w, r)
	if err != nil {
		return err
	}
	form := formOf(r)
	spec, err := form.spec()
	if err == nil {
		_, err = p.budgets.Set(r.Context(), organization, request, spec)
	}
	return p.afterBudget(w, r, form, err, "budget-set")
}

// removeBudget removes one budget and redirects to the list.
func (p budgetPages) removeBudget(w http.ResponseWriter, r *http.Request) error {
	organization, request, err := budgetRequest(w, r)
	if err != nil {
		return err
	}
	form := formOf(r)
	of := ledger.Spender{Project: form.project, Key: form.key}
	_, err = p.budgets.Remove(r.Context(), organization, request, of)
	return p.afterBudget(w, r, form, err, "budget-removed")
}

// budgetRequest returns the request of a member who may set budgets,
// with its form parsed.
func budgetRequest(w http.ResponseWriter, r *http.Request) (organization string, request unitofwork.Request, err error) {
	reader := identity.FromContext(r.Context())
	if !identity.RoleSetsBudgets(reader.Role()) {
		return "", request, httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role here is "+reader.Role()+", which may not set budgets. Ask one of the "+strings.Join(identity.RolesThatSetBudgets(), "s, ")+"s.")
	}
	return reader.Organization, unitofwork.Request{Actor: reader.Member, ID: httpapi.RequestID(r.Context())}, ui.ReadForm(w, r)
}

func (p budgetPages) afterBudget(w http.ResponseWriter, r *http.Request, form budgetForm, err error, flash string) error {
	var invalid ledger.Invalid
	var full ledger.LimitReached
	var project ledger.NoProject
	switch {
	case errors.As(err, &project):
		return httpapi.NotFound("project", project.Project)
	case errors.As(err, &invalid):
		return p.writeBudgets(w, r, http.StatusUnprocessableEntity, form, invalid)
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, ledger.ErrNoOrganization):
		return httpapi.NotFound("organization", identity.FromContext(r.Context()).Organization)
	case err != nil:
		return err
	}
	ui.SetFlash(w, flash)
	http.Redirect(w, r, budgetsPath, http.StatusSeeOther)
	return nil
}
