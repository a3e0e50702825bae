package console

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/grants"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

type statementsPage struct {
	Statements []shownStatement
	Pager      ui.Pager
}

// statementPages show the statements of closed periods.
type statementPages struct {
	site
	statements *balances.Statements
	grants     *grants.Service
}

// A shownStatement is a statement as text.
type shownStatement struct {
	ledger.Statement
	Name     string    // of the organization
	Console  bool      // shown there, not to a client of the API
	LastDay  time.Time // of the period
	Charged  int64
	Could    int64 // be used: the quota, and all grants
	Projects []shownCharges
	Days     []shownCharges
	Reasons  map[string]string // of grants and adjustments, by id; bounded by knownGrants
}

// Share is how much of what could be used was.
func (s shownStatement) Share() string {
	return shareText(thousandths(s.Charged, s.Could)/10, s.Charged)
}

// PerMille is the same in thousandths, for the bar.
func (s shownStatement) PerMille() int64 { return thousandths(s.Charged, s.Could) }

// High is for what was used up, nearly.
func (s shownStatement) High() bool { return s.PerMille() >= 800 }

// knownGrants is how many grants, those made last, are shown with their reason.
const knownGrants = 1000

// shownCharges are charges of a project and environment, or of a day.
type shownCharges struct {
	Project, Environment     string
	Day                      time.Time
	Requests, Entries, Bytes int64
}

// statementPlace is where a list of statements continues.
type statementPlace struct {
	Number int64 `json:"n"`
}

func (p statementPages) showStatements(w http.ResponseWriter, r *http.Request) error {
	var before statementPlace
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &before); err != nil {
			return err
		}
	}
	found, err := p.statements.List(r.Context(), identity.OrganizationOf(r.Context()), before.Number, pageSize+1)
	if err != nil && !errors.Is(err, ledger.ErrNoOrganization) {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last ledger.Statement) any { return statementPlace{last.Number} })
	page := statementsPage{Pager: ui.NewPager(r, list.NextCursor)}
	for _, statement := range list.Items {
		page.Statements = append(page.Statements, showTotals(statement))
	}
	p.pages.Write(w, r, http.StatusOK, "statements", ui.View{Title: "Statements", Tabs: p.tabs(r, statementsPath), Data: page})
	return nil
}

func showTotals(s ledger.Statement) shownStatement {
	t := s.Totals
	return shownStatement{
		Statement: s, LastDay: s.Period.End.AddDate(0, 0, -1), Charged: t.Consumed + t.Overage, Could: t.Opening + t.Allowance + t.Prorated + t.Granted,
	}
}

func (p statementPages) showStatement(w http.ResponseWriter, r *http.Request) error {
	statement, err := p.statement(r)
	if err != nil {
		return err
	}
	known, err := p.grants.List(r.Context(), statement.Organization, postgres.GrantCursor{}, knownGrants)
	if err != nil {
		return err
	}
	reasons := map[string]string{} // bounded by knownGrants
	for _, grant := range known {
		reasons[grant.ID] = grant.Reason
	}
	p.writeStatement(w, r, statement, reasons)
	return nil
}

// writeStatement writes a statement in the console, or for a client of the API, who gets no reasons.
func (p statementPages) writeStatement(w http.ResponseWriter, r *http.Request, s ledger.Statement, reasons map[string]string) {
	shown, inConsole := showTotals(s), reasons != nil
	shown.Console, shown.Reasons, shown.Name = inConsole, reasons, p.directory.OrganizationName(s.Organization)
	shown.Days, shown.Projects = byDay(s.Charges), p.byProject(s)
	view := ui.View{Title: fmt.Sprintf("Statement %d", s.Number), Bare: !inConsole, Data: shown}
	if inConsole {
		view.Tabs = p.tabs(r, statementsPath)
	}
	p.pages.Write(w, r, http.StatusOK, "statement", view)
}

// StatementPage returns what writes a statement as a page that prints,
// for clients of the API. It names projects by directory.
func StatementPage(directory *identity.Directory) func(http.ResponseWriter, *http.Request, ledger.Statement) {
	p := statementPages{site: newSite(Config{Directory: directory})}
	return func(w http.ResponseWriter, r *http.Request, s ledger.Statement) {
		p.pages.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.writeStatement(w, r, s, nil) })).ServeHTTP(w, r)
	}
}

// statement returns the statement of the path.
func (p statementPages) statement(r *http.Request) (ledger.Statement, error) {
	text := chi.URLParam(r, "statement")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ledger.Statement{}, httpapi.NotFound("statement", text)
	}
	statement, err := p.statements.Statement(r.Context(), identity.OrganizationOf(r.Context()), number)
	if errors.Is(err, ledger.ErrNoStatement) || errors.Is(err, ledger.ErrNoOrganization) {
		return statement, httpapi.NotFound("statement", text)
	}
	return statement, err
}

// downloadStatement writes a whole statement as CSV.
func (p statementPages) downloadStatement(w http.ResponseWriter, r *http.Request) error {
	statement, err := p.statement(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", httpapi.TypeCSV)
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="statement-%d.csv"`, statement.Number))
	out := httpapi.NewPacedWriter(w)
	if err := csv.NewWriter(out).WriteAll(append([][]string{ledger.StatementColumns()}, statement.Table()...)); err != nil {
		return err
	}
	return out.Flush()
}

// byDay adds up charges by day. They are in day order.
func byDay(charges []ledger.DayCharge) (days []shownCharges) {
	for _, charge := range charges {
		if len(days) == 0 || !days[len(days)-1].Day.Equal(charge.Day) {
			days = append(days, shownCharges{Day: charge.Day})
		}
		days[len(days)-1].add(charge)
	}
	return days
}

// byProject adds up charges by project and environment, in the order of
// their first.
func (p statementPages) byProject(statement ledger.Statement) (projects []shownCharges) {
	at := map[[2]string]int{}
	for _, charge := range statement.Charges {
		key := [2]string{charge.Project, charge.Environment}
		i, known := at[key]
		if !known {
			i, at[key] = len(projects), len(projects)
			projects = append(projects, shownCharges{Project: p.nameOf(statement.Organization, postgres.ByProject, charge.Project), Environment: charge.Environment})
		}
		projects[i].add(charge)
	}
	return projects
}

func (s *shownCharges) add(c ledger.DayCharge) {
	s.Requests, s.Entries, s.Bytes = s.Requests+c.Requests, s.Entries+c.Entries, s.Bytes+c.Bytes
}
