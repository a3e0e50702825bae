package ledger

import (
	"strconv"
	"time"
)

// StatementColumns are the columns of Statement.Table.
func StatementColumns() []string {
	return []string{"statement", "line", "day", "project", "environment", "subject", "of_period", "requests", "entries", "bytes"}
}

// Table returns a statement as lines of text: totals, then their parts.
func (s Statement) Table() [][]string {
	t := statementTable{number: strconv.FormatInt(s.Number, 10)}
	if s.Test {
		t.add("test", statementCells{})
	}
	t.totals(s.Totals)
	for _, g := range s.Grants {
		t.grant(g)
	}
	for _, a := range s.Adjustments {
		t.add("adjustment", statementCells{subject: a.ID, of: a.Of}, a.Bytes)
	}
	for _, l := range s.Late {
		t.add("late", statementCells{of: l.Of}, l.Bytes)
	}
	for _, c := range s.Charges {
		t.add("charge", statementCells{day: c.Day.Format(time.DateOnly), project: c.Project, environment: c.Environment}, c.Requests, c.Entries, c.Bytes)
	}
	return t.lines
}

type statementTable struct {
	number string
	lines  [][]string
}

type statementCells struct {
	day, project, environment, subject string
	of                                 time.Time
}

// add adds a line. numbers are the last of requests, entries and bytes.
func (t *statementTable) add(line string, c statementCells, numbers ...int64) {
	of := ""
	if !c.of.IsZero() {
		of = c.of.Format(time.RFC3339)
	}
	cells := []string{t.number, line, c.day, c.project, c.environment, c.subject, of, "", "", ""}
	for i, n := range numbers {
		cells[len(cells)-len(numbers)+i] = strconv.FormatInt(n, 10)
	}
	t.lines = append(t.lines, cells)
}

func (t *statementTable) totals(sums Totals) {
	for _, total := range []struct {
		line  string
		bytes int64
	}{
		{"opening", sums.Opening}, {"allowance", sums.Allowance}, {"prorated", sums.Prorated}, {"granted", sums.Granted},
		{"consumed", sums.Consumed}, {"overage", sums.Overage}, {"overshoot", sums.Overshoot},
		{"expired", sums.Expired}, {"voided", sums.Voided}, {"closing", sums.Closing},
	} {
		t.add(total.line, statementCells{}, total.bytes)
	}
}

// grant adds a grant's nonzero changes.
func (t *statementTable) grant(g GrantMovement) {
	for _, moved := range []struct {
		line  string
		bytes int64
	}{
		{"grant_opening", g.Opening}, {"grant_issued", g.Issued}, {"grant_used", g.Used}, {"grant_expired", g.Expired},
		{"grant_voided", g.Voided}, {"grant_closing", g.Closing},
	} {
		if moved.bytes != 0 {
			t.add(moved.line, statementCells{subject: g.Grant}, moved.bytes)
		}
	}
}
