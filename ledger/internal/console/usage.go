package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/ledger/internal/usage"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

//go:embed templates/*.html
var templates embed.FS

// The pages with an address of their own.
const (
	usagePath      = "/console/usage"
	refusalsPath   = "/console/usage/refusals"
	statementsPath = "/console/usage/statements"
)

// pageSize is how many transfers a page shows.
const pageSize = 25

// Config holds what the pages need.
type Config struct {
	Services  *services.Services
	Directory *identity.Directory
	Guard     *identity.Guard
	Operators string // organization whose owners are operators; empty: none
}

// A site is what all pages share.
type site struct {
	pages     *ui.Pages
	directory *identity.Directory
	operators string // organization whose owners are operators; empty: none
}

func newSite(config Config) site {
	s := site{directory: config.Directory, operators: config.Operators}
	s.pages = ui.NewPages(ui.Usage, templates).Following(s.directory)
	return s
}

// tabs are the section's pages that the reader may see, with the one at path marked.
func (s site) tabs(r *http.Request, path string) (links []ui.Link) {
	tabs := [][2]string{
		{"This period", usagePath}, {"Plan", planPath}, {"Budgets", budgetsPath}, {"Refused requests", refusalsPath}, {"Statements", statementsPath},
	}
	if s.operates(r) {
		tabs = append(tabs, [2]string{"All organizations", organizationsPath})
	}
	for _, tab := range tabs {
		links = append(links, ui.Link{Text: tab[0], Href: tab[1], Current: tab[1] == path})
	}
	return links
}

// Mount adds the pages to router.
func Mount(router chi.Router, config Config) {
	s, of := newSite(config), config.Services
	usages := usagePages{site: s, services: of}
	plan := planPages{site: s, plans: of.Plans, forecasts: of.Forecasts}
	budget := budgetPages{site: s, budgets: of.Budgets}
	statement := statementPages{site: s, statements: of.Statements, grants: of.Grants}
	s.pages.Mount(router, config.Guard, func(r chi.Router) {
		r.Get(usagePath, s.pages.Handle(usages.showUsage))
		r.Get(overviewPath, s.pages.Handle(usages.showOverview))
		r.Get(refusalsPath, s.pages.Handle(usages.showRefusals))
		r.Get(planPath, s.pages.Handle(plan.showPlan))
		r.Post(planPath, s.pages.Handle(plan.changePlan))
		r.Get(organizationsPath, s.pages.Handle(usages.showOrganizations))
		r.Get(budgetsPath, s.pages.Handle(budget.showBudgets))
		r.Post(budgetsPath, s.pages.Handle(budget.setBudget))
		r.Post(budgetsPath+"/remove", s.pages.Handle(budget.removeBudget))
		r.Get(statementsPath, s.pages.Handle(statement.showStatements))
		r.Get(statementsPath+"/{statement}", s.pages.Handle(statement.showStatement))
		r.Get(statementsPath+"/{statement}/csv", s.pages.Handle(statement.downloadStatement))
	})
}

// usagePages show what was used and refused, of one organization or of all.
type usagePages struct {
	site
	services *services.Services
}

func (p usagePages) showUsage(w http.ResponseWriter, r *http.Request) error {
	query, err := transferQuery(r)
	if err != nil {
		return err
	}
	view, err := usageViewOf(r)
	if err != nil {
		return err
	}
	overview, err := p.services.Balances.Overview(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if errors.Is(err, ledger.ErrNoOrganization) {
		p.writeUsage(w, r, usagePage{})
		return nil
	}
	if err != nil {
		return err
	}
	page := newUsagePage(overview.Balance)
	page.Day, page.Views = view.day, view.views()
	if page.Chart, err = p.chart(r, view, overview.Balance.Book.Period); err != nil {
		return err
	}
	if err := p.addFunding(r.Context(), &page, overview.Balance); err != nil {
		return err
	}
	list := httpapi.NewList(r, overview.Transfers, pageSize, func(last postgres.BookedTransfer) any { return last.Cursor() })
	page.Transfers, page.Pager = p.showTransfers(list.Items), ui.NewPager(r, list.NextCursor)
	p.writeUsage(w, r, page)
	return nil
}

func (p usagePages) writeUsage(w http.ResponseWriter, r *http.Request, page usagePage) {
	p.pages.Write(w, r, http.StatusOK, "usage", ui.View{Title: "Usage", Tabs: p.tabs(r, usagePath), Data: page})
}

// transferQuery is the page of transfers that a request wants, and
// one transfer more, which tells whether there is a next page.
func transferQuery(r *http.Request) (query postgres.TransferQuery, err error) {
	query = postgres.TransferQuery{To: distantFuture(), Limit: pageSize + 1}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		err = httpapi.DecodeCursor(r, cursor, &query.After)
	}
	return query, err
}

// addFunding adds what the organization may still use, and until when.
func (p usagePages) addFunding(ctx context.Context, page *usagePage, balance balances.Balance) error {
	forecast, err := p.services.Forecasts.Forecast(ctx, balance.Organization.ID)
	if err != nil {
		return err
	}
	funds, err := p.services.Balances.Funds(ctx, balance.Organization.ID)
	if err != nil {
		return err
	}
	budgets, err := p.services.Budgets.List(ctx, balance.Organization.ID)
	if err != nil {
		return err
	}
	page.Forecast, page.Funds, page.Budgets = forecast.Forecast, showFunds(balance, funds), p.listBudgets(balance.Organization.ID, budgets.Budgets)
	return nil
}

// distantFuture is later than any transfer.
func distantFuture() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

type usagePage struct {
	Known bool // false: the ledger has not consumed the organization's creation yet
	shownPeriod
	shownUse
	Forecast  ledger.Forecast
	Funds     []shownFund
	Budgets   []shownBudget
	Chart     chart
	Day       time.Time // whose hours the chart shows; zero: the period's days
	Views     []view
	Transfers []shownTransfer
	Pager     ui.Pager
}

// A shownPeriod is the running period and its plan.
type shownPeriod struct {
	Test           bool // a test organization
	Tier           string
	PerMinute      int64
	Start, End, At time.Time
	State          string // such as ledger.Exhausted
}

// A shownUse is what was used of a period.
type shownUse struct {
	Granted   int64
	Used      int64 // Consumed and Overage
	Consumed  int64
	Remaining int64
	Overage   int64
	Overshoot int64
	Percent   int64 // used of what was granted, 0 to 100, rounded down
	PerMille  int64 // the same in thousandths, for the bar
}

func newUsagePage(b balances.Balance) usagePage {
	period := shownPeriod{
		Test: b.Organization.IsTest(), Tier: string(b.Plan.Tier), PerMinute: int64(b.Terms.RequestsPerMinute),
		Start: b.Book.Period.Start, End: b.Book.Period.End, At: b.At, State: b.State(),
	}
	use := shownUse{
		Granted: b.Book.Granted(), Used: b.Book.Used(), Consumed: b.Book.Balances[ledger.Consumed], Remaining: b.Book.Remaining(),
		Overage: b.Book.Balances[ledger.Overage], Overshoot: b.Book.Balances[ledger.Overshoot],
	}
	use.PerMille = thousandths(use.Used, use.Granted)
	use.Percent = use.PerMille / 10
	return usagePage{Known: true, shownPeriod: period, shownUse: use}
}

// Share returns the used part as text.
func (u shownUse) Share() string { return shareText(u.Percent, u.Used) }

func shareText(percent, used int64) string {
	if percent == 0 && used > 0 {
		return "under 1%"
	}
	return fmt.Sprintf("%d%%", percent)
}

// High reports whether little is left.
func (u shownUse) High() bool { return u.Percent >= 80 }

// LastDay returns the last day of the period.
func (p shownPeriod) LastDay() time.Time { return p.End.AddDate(0, 0, -1) }

// Exhausted reports whether new logs are refused.
func (p shownPeriod) Exhausted() bool { return p.State == ledger.Exhausted }

// Suspended reports whether all requests are refused.
func (p shownPeriod) Suspended() bool { return p.State == ledger.Suspended }

// thousandths returns part of whole, 0 to 1000, rounded down. It
// divides first where a product would overflow.
func thousandths(part, whole int64) int64 {
	switch {
	case part <= 0 || whole <= 0:
		return 0
	case part >= whole:
		return 1000
	case whole >= 1<<50:
		return part / (whole / 1000)
	}
	return part * 1000 / whole
}

// A shownTransfer is a transfer as text.
type shownTransfer struct {
	EffectiveAt time.Time
	What        string
	Amount      int64
	Entries     int64
	Project     string // its name; empty: none
}

func (s site) showTransfers(transfers []postgres.BookedTransfer) (shown []shownTransfer) {
	for _, t := range transfers {
		shown = append(shown, shownTransfer{
			EffectiveAt: t.EffectiveAt, What: whatText(t), Amount: t.Amount, Entries: int64(t.Entries), Project: s.directory.Name(t.Cause.Project),
		})
	}
	return shown
}

// whatText describes a transfer.
func whatText(t postgres.BookedTransfer) string {
	if t.Reason == ledger.Issued && t.To == ledger.Credit {
		return "Grant"
	}
	return reasonText(t.Reason)
}

func reasonText(reason ledger.Reason) string {
	switch reason {
	case ledger.Issued:
		return "Quota of the period"
	case ledger.Charged:
		return "Logs accepted"
	case ledger.Settled:
		return "Earlier overage covered"
	case ledger.Late:
		return "Logs accepted in a closed period"
	case ledger.Prorated:
		return "Larger plan, for the rest of the period"
	case ledger.Lapsed:
		return "Expired unused"
	case ledger.TakenBack:
		return "Grant voided"
	case ledger.Corrected:
		return "Adjustment"
	}
	return reason.String()
}

// A shownFund is a fund as text.
type shownFund struct {
	Name     string
	ID       string // of a grant
	Reason   string
	Left, Of int64
	Starts   time.Time // zero: it is in force
	Ends     time.Time // zero: never
}

// showFunds returns the funds in order of use.
func showFunds(b balances.Balance, funds []ledger.Fund) (shown []shownFund) {
	for _, fund := range funds {
		if g := fund.Grant; g != nil {
			shown = append(shown, showGrant(*g, fund.Left))
			continue
		}
		shown = append(shown, shownFund{
			Name: "The plan's quota", Left: fund.Left, Of: b.Terms.Quota, Ends: b.Book.Period.End,
		})
	}
	return shown
}

func showGrant(g ledger.Grant, left int64) shownFund {
	shown := shownFund{Name: "Grant", ID: g.ID, Reason: g.Reason, Left: left, Of: g.Amount, Ends: g.Expires}
	if g.Status == ledger.GrantScheduled {
		shown.Starts = g.Starts
	}
	return shown
}

type refusalsPage struct {
	Refusals []shownRefusal
	Pager    ui.Pager
}

// A shownRefusal is a refusal as text.
type shownRefusal struct {
	usage.ExplainedRefusal
	ProjectName string
	KeyName     string
	Suspended   bool
	Spender     string // whose budget refused it; empty: none
	By          []shownShare
	Grant       int64
	Tiers       []ledger.Tier
	EndsAt      time.Time
}

// A shownShare is a project, key or hour and its bytes.
type shownShare struct {
	Kind, Name string
	Bytes      int64
}

func (p usagePages) showRefusals(w http.ResponseWriter, r *http.Request) error {
	query := postgres.RefusalQuery{To: distantFuture(), Limit: pageSize + 1}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &query.After); err != nil {
			return err
		}
	}
	organization := identity.FromContext(r.Context()).Organization
	found, err := p.services.Usage.Refusals(r.Context(), organization, query)
	if err != nil && !errors.Is(err, ledger.ErrNoOrganization) {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last usage.ExplainedRefusal) any { return postgres.RefusalPlace(last.Refusal) })
	page := refusalsPage{Pager: ui.NewPager(r, list.NextCursor)}
	for _, refusal := range list.Items {
		page.Refusals = append(page.Refusals, p.showRefusal(organization, refusal))
	}
	p.pages.Write(w, r, http.StatusOK, "refusals", ui.View{Title: "Why requests were refused", Tabs: p.tabs(r, refusalsPath), Data: page})
	return nil
}

// spenderOf returns the spender whose budget refused a request.
func spenderOf(r ledger.Refusal) string {
	switch r.Reason {
	case contract.ReasonProjectBudget:
		return "project"
	case contract.ReasonKeyBudget:
		return "API key"
	}
	return ""
}

func (s site) showRefusal(organization string, r usage.ExplainedRefusal) shownRefusal {
	shown := shownRefusal{
		ExplainedRefusal: r, ProjectName: s.nameOf(organization, postgres.ByProject, r.Cause.Project),
		KeyName: s.nameOf(organization, postgres.ByKey, r.Cause.Key), Suspended: r.Reason == contract.ReasonSuspended,
		Spender: spenderOf(r.Refusal), Grant: r.Resolution.Grant, Tiers: r.Resolution.Tiers, EndsAt: r.EndsAt,
	}
	if r.Crossed != nil {
		for _, share := range r.Crossed.UsedBy {
			shown.By = append(shown.By, shownShare{share.By, s.nameOf(organization, postgres.Dimension(share.By), share.ID), share.Bytes})
		}
	}
	return shown
}
