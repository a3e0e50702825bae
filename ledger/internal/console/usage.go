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

// pageSize is how many transfers a page shows.
const pageSize = 25

// Config holds what the pages need.
type Config struct {
	Services  *services.Services
	Directory *identity.Directory
	Guard     *identity.Guard
	Operators string // organization whose owners are operators; empty: none
}

type console struct {
	Config
	pages *ui.Pages
}

// Mount adds the pages to router.
func Mount(router chi.Router, config Config) {
	c := newConsole(config)
	c.pages.Mount(router, config.Guard, func(r chi.Router) {
		r.Get("/console/usage", c.pages.Handle(c.showUsage))
		r.Get("/console/usage/refusals", c.pages.Handle(c.showRefusals))
		r.Get(planPath, c.pages.Handle(c.showPlan))
		r.Post(planPath, c.pages.Handle(c.changePlan))
		r.Get(organizationsPath, c.pages.Handle(c.showOrganizations))
		r.Get(budgetsPath, c.pages.Handle(c.showBudgets))
		r.Post(budgetsPath, c.pages.Handle(c.setBudget))
		r.Post(budgetsPath+"/remove", c.pages.Handle(c.removeBudget))
		r.Get("/console/usage/statements", c.pages.Handle(c.showStatements))
		r.Get("/console/usage/statements/{statement}", c.pages.Handle(c.showStatement))
		r.Get("/console/usage/statements/{statement}/csv", c.pages.Handle(c.downloadStatement))
	})
}

func newConsole(config Config) *console {
	return &console{Config: config, pages: ui.NewPages(ui.Usage, templates)}
}

func (c *console) showUsage(w http.ResponseWriter, r *http.Request) error {
	query, err := transferQuery(r)
	if err != nil {
		return err
	}
	view, err := usageViewOf(r)
	if err != nil {
		return err
	}
	overview, err := c.Services.Balances.Overview(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if errors.Is(err, ledger.ErrNoOrganization) {
		c.writeUsage(w, r, usagePage{})
		return nil
	}
	if err != nil {
		return err
	}
	page := newUsagePage(overview.Balance)
	page.Day, page.Views, page.Operates = view.day, view.views(), c.operates(r)
	if page.Chart, err = c.chart(r, view, overview.Balance.Book.Period); err != nil {
		return err
	}
	if err := c.addFunding(r.Context(), &page, overview.Balance); err != nil {
		return err
	}
	list := httpapi.NewList(r, overview.Transfers, pageSize, func(last postgres.BookedTransfer) any { return last.Cursor() })
	page.Transfers, page.Pager = c.showTransfers(list.Items), ui.NewPager(r, list.NextCursor)
	c.writeUsage(w, r, page)
	return nil
}

func (c *console) writeUsage(w http.ResponseWriter, r *http.Request, page usagePage) {
	c.pages.Write(w, r, http.StatusOK, "usage", ui.View{Title: "Usage", Data: page})
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
func (c *console) addFunding(ctx context.Context, page *usagePage, balance balances.Balance) error {
	forecast, err := c.Services.Forecasts.Forecast(ctx, balance.Organization.ID)
	if err != nil {
		return err
	}
	funds, err := c.Services.Balances.Funds(ctx, balance.Organization.ID)
	if err != nil {
		return err
	}
	budgets, err := c.Services.Budgets.List(ctx, balance.Organization.ID)
	if err != nil {
		return err
	}
	page.Forecast, page.Funds, page.Budgets = forecast.Forecast, showFunds(balance, funds), c.listBudgets(budgets.Budgets)
	return nil
}

// distantFuture is later than any transfer.
func distantFuture() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

type usagePage struct {
	Test      bool // a test organization
	Known     bool // false: the ledger has not consumed the organization's creation yet
	Tier      string
	PerMinute int64
	Start     time.Time
	End       time.Time
	At        time.Time
	Granted   int64
	Used      int64 // Consumed and Overage
	Consumed  int64
	Remaining int64
	Overage   int64
	Overshoot int64
	State     string // such as ledger.Exhausted
	Percent   int64  // used of what was granted, 0 to 100, rounded down
	PerMille  int64  // the same in thousandths, for the bar
	Forecast  ledger.Forecast
	Funds     []shownFund
	Budgets   []shownBudget
	Operates  bool // the reader is an operator
	Chart     chart
	Day       time.Time // whose hours the chart shows; zero: the period's days
	Views     []view
	Transfers []shownTransfer
	Pager     ui.Pager
}

func newUsagePage(b balances.Balance) usagePage {
	page := usagePage{
		Test: b.Organization.IsTest(), Known: true, Tier: string(b.Plan.Tier), PerMinute: int64(b.Terms.RequestsPerMinute),
		Start: b.Book.Period.Start, End: b.Book.Period.End, At: b.At,
		Granted: b.Book.Granted(), Used: b.Book.Used(), Consumed: b.Book.Balances[ledger.Consumed], Remaining: b.Book.Remaining(),
		Overage: b.Book.Balances[ledger.Overage], Overshoot: b.Book.Balances[ledger.Overshoot], State: b.State(),
	}
	page.PerMille = thousandths(page.Used, page.Granted)
	page.Percent = page.PerMille / 10
	return page
}

// Share returns the used part as text.
func (p usagePage) Share() string {
	if p.Percent == 0 && p.Used > 0 {
		return "under 1%"
	}
	return fmt.Sprintf("%d%%", p.Percent)
}

// Exhausted reports whether new logs are refused.
func (p usagePage) Exhausted() bool { return p.State == ledger.Exhausted }

// Suspended reports whether all requests are refused.
func (p usagePage) Suspended() bool { return p.State == ledger.Suspended }

// High reports whether little is left.
func (p usagePage) High() bool { return p.Percent >= 80 }

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
	From, To    string
	Amount      int64
	Entries     int64
	Project     string // its name; empty: none
}

func (c *console) showTransfers(transfers []postgres.BookedTransfer) (shown []shownTransfer) {
	for _, transfer := range transfers {
		shown = append(shown, c.show(transfer))
	}
	return shown
}

func (c *console) show(t postgres.BookedTransfer) shownTransfer {
	return shownTransfer{
		EffectiveAt: t.EffectiveAt, What: reasonText(t.Reason), From: t.From.String(), To: t.To.String(),
		Amount: t.Amount, Entries: int64(t.Entries), Project: c.Directory.Name(t.Cause.Project),
	}
}

func reasonText(reason ledger.Reason) string {
	switch reason {
	case ledger.Issued:
		return "Allowance of the period"
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
	Reason   string
	Left, Of int64
	Priority int64
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
			Name: "The plan's allowance", Left: fund.Left, Of: b.Terms.Quota, Priority: ledger.PlanPriority, Ends: b.Book.Period.End,
		})
	}
	return shown
}

func showGrant(g ledger.Grant, left int64) shownFund {
	shown := shownFund{Name: g.ID, Reason: g.Reason, Left: left, Of: g.Amount, Priority: int64(g.Priority), Ends: g.Expires}
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

func (c *console) showRefusals(w http.ResponseWriter, r *http.Request) error {
	query := postgres.RefusalQuery{To: distantFuture(), Limit: pageSize + 1}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &query.After); err != nil {
			return err
		}
	}
	found, err := c.Services.Usage.Refusals(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if err != nil && !errors.Is(err, ledger.ErrNoOrganization) {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last usage.ExplainedRefusal) any { return postgres.RefusalPlace(last.Refusal) })
	page := refusalsPage{Pager: ui.NewPager(r, list.NextCursor)}
	for _, refusal := range list.Items {
		page.Refusals = append(page.Refusals, c.showRefusal(refusal))
	}
	c.pages.Write(w, r, http.StatusOK, "refusals", ui.View{Title: "Why requests were refused", Data: page})
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

func (c *console) showRefusal(r usage.ExplainedRefusal) shownRefusal {
	shown := shownRefusal{
		ExplainedRefusal: r, ProjectName: c.nameOf(postgres.ByProject, r.Cause.Project), Suspended: r.Reason == contract.ReasonSuspended,
		Spender: spenderOf(r.Refusal), Grant: r.Resolution.Grant, Tiers: r.Resolution.Tiers, EndsAt: r.EndsAt,
	}
	if r.Crossed != nil {
		for _, share := range r.Crossed.UsedBy {
			shown.By = append(shown.By, shownShare{share.By, c.nameOf(postgres.Dimension(share.By), share.ID), share.Bytes})
		}
	}
	return shown
}
