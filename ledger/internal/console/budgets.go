package console

import (
	"errors"
	"fmt"
	"net/http"
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
	Of      ui.Field
	Size    ui.Field
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
	Detail     string // of a key: its project and environment
	PerMille   int64  // used, 0 to 1000
}

// Out reports whether requests are refused.
func (b shownBudget) Out() bool { return b.IsExhausted() }

// High reports whether little is left.
func (b shownBudget) High() bool { return b.PerMille >= 800 }

// Share is the used part as text.
func (b shownBudget) Share() string { return shareText(b.PerMille/10, b.Used) }

var budgetFlashes = map[string]string{
	"budget-set":     "The budget is set. It is in force within a second.",
	"budget-removed": "The budget is removed. Only the plan's quota applies now.",
}

func (p budgetPages) showBudgets(w http.ResponseWriter, r *http.Request) error {
	return p.writeBudgets(w, r, http.StatusOK, budgetForm{of: r.URL.Query().Get("of")}, ledger.Invalid{})
}

func (p budgetPages) writeBudgets(w http.ResponseWriter, r *http.Request, status int, form budgetForm, fault ledger.Invalid) error {
	reader := identity.FromContext(r.Context())
	found, err := p.budgets.List(r.Context(), reader.Organization)
	page := budgetsPage{
		Known: !errors.Is(err, ledger.ErrNoOrganization), Resets: found.Period.End, CanSet: identity.RoleSetsBudgets(reader.Role()),
		Setters: ui.Roles(identity.RolesThatSetBudgets(), "and"),
	}
	if err != nil && page.Known {
		return err
	}
	page.Budgets = p.listBudgets(reader.Organization, found.Budgets)
	p.fill(&page, reader.Organization, form, fault)
	p.pages.Write(w, r, status, "budgets", ui.View{
		Title: "Budgets", Tabs: p.tabs(r, budgetsPath), Data: page, Flash: ui.TakeFlash(w, r, budgetFlashes),
	})
	return nil
}

func (s site) listBudgets(organization string, budgets []ledger.Budget) (shown []shownBudget) {
	for _, budget := range budgets {
		shown = append(shown, s.showBudget(organization, budget))
	}
	return shown
}

func (s site) showBudget(organization string, b ledger.Budget) shownBudget {
	shown := shownBudget{Budget: b, PerMille: thousandths(b.Used, b.Bytes)}
	if b.Key == "" {
		shown.Kind, shown.Name = "Project", s.nameOf(organization, postgres.ByProject, b.Project)
		return shown
	}
	shown.Kind, shown.Name = "API key", b.Key
	if key, known := s.directory.Key(organization, b.Key); known {
		shown.Name, shown.Detail = key.Name, s.placeOf(key)
	}
	return shown
}

// placeOf says where a key is used.
func (s site) placeOf(key identity.Key) string {
	return s.directory.Name(key.Project) + ", " + key.Environment
}

// fill fills the form of a budget. One that is set already comes with its size.
func (p budgetPages) fill(page *budgetsPage, organization string, form budgetForm, fault ledger.Invalid) {
	for _, budget := range page.Budgets {
		if form.size == "" && budget.Spender.String() == form.of {
			form.size = sizeText(budget.Bytes)
		}
	}
	text := strings.TrimSpace(fault.Detail + " " + fault.Fix)
	page.Of = ui.Field{Name: "of", Label: "Budget for", Choices: p.spenders(organization, form.of)}
	page.Size = ui.Field{Name: "size", Label: "Per period", Value: form.size, Required: true, MaxLength: maxPlanField, Autocomplete: "off",
		Hint: "Such as 1.5 GiB or 500 MiB."}
	switch fault.Field {
	case "":
	case "bytes":
		page.Size.Fault = text
	default:
		page.Of.Fault = text
	}
}

// spenders are the projects and keys that may have a budget.
func (p budgetPages) spenders(organization, chosen string) []ui.Choice {
	choices := [][2]string{{"", "Choose a project or an API key"}}
	for _, project := range p.directory.Projects(organization) {
		choices = append(choices, [2]string{ledger.Spender{Project: project.Project}.String(), "Project: " + project.Name})
	}
	for _, key := range p.directory.Keys(organization) {
		choices = append(choices, [2]string{ledger.Spender{Key: key.ID}.String(), "API key: " + key.Name + " (" + p.placeOf(key) + ")"})
	}
	return ui.NewChoices(chosen, choices...)
}

// A budgetForm holds the fields of a submitted form.
type budgetForm struct{ of, size string }

func formOf(r *http.Request) budgetForm {
	return budgetForm{of: r.PostForm.Get("of"), size: strings.TrimSpace(r.PostForm.Get("size"))}
}

// spender returns the spender of a form, as Spender.String names it.
func (f budgetForm) spender() (of ledger.Spender, err error) {
	switch kind, id, _ := strings.Cut(f.of, ":"); kind {
	case "project":
		of.Project = id
	case "key":
		of.Key = id
	}
	if of == (ledger.Spender{}) {
		return of, ledger.Invalid{Field: "of", Detail: "Choose a project or an API key."}
	}
	return of, nil
}

// spec returns the budget of a form.
func (f budgetForm) spec() (ledger.BudgetSpec, error) {
	of, err := f.spender()
	if err != nil {
		return ledger.BudgetSpec{}, err
	}
	bytes, ok := parseSize(f.size)
	if !ok {
		return ledger.BudgetSpec{}, ledger.Invalid{Field: "bytes", Detail: fmt.Sprintf("%q is not a size.", f.size),
			Fix: "Use a number above zero and a unit, such as 1.5 GiB."}
	}
	return ledger.BudgetSpec{Spender: of, Bytes: bytes}, nil
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
	of, err := form.spender()
	if err == nil {
		_, err = p.budgets.Remove(r.Context(), organization, request, of)
	}
	return p.afterBudget(w, r, form, err, "budget-removed")
}

// budgetRequest returns the request of a member who may set budgets,
// with its form parsed.
func budgetRequest(w http.ResponseWriter, r *http.Request) (organization string, request unitofwork.Request, err error) {
	reader := identity.FromContext(r.Context())
	if !identity.RoleSetsBudgets(reader.Role()) {
		return "", request, httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role here is "+reader.Role()+", which may not set budgets. Ask one of the "+ui.Roles(identity.RolesThatSetBudgets(), "or")+".")
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
