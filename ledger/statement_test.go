package ledger

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// state makes and checks the statements of periods that have just closed.
func (h *history) state(books *Books) {
	h.t.Helper()
	for _, line := range books.Lines() {
		bytes := line.Bytes
		line.Bytes = 0
		h.lines[line] += bytes
	}
	for _, event := range books.Events {
		if event.Kind != PeriodClosed {
			continue
		}
		s, made := books.Statement(event, h.sources(event.Book), h.now)
		err := s.Check()
		if t, b := s.Totals, event.Book.Balances; err != nil || !made || t.Consumed != b[Consumed] || t.Expired != b[Expired] || t.Closing-t.Opening != b[Credit] {
			h.fail("statement %+v (made: %t, error: %v)\n  book %v", s, made, err, b)
		}
		h.events = append(h.events, s.Ready(event))
	}
}

// sources returns the sources of a statement.
func (h *history) sources(book Book) (from Sources) {
	for _, line := range sorted(h.lines) {
		if !line.Start.Before(book.Period.Start) {
			from.Lines = append(from.Lines, line)
		}
	}
	for _, grant := range h.grants {
		from.Grants = append(from.Grants, grant)
	}
	for _, a := range h.acts {
		if a.kind == actCharge && book.Period.Contains(a.at) {
			from.Charges = append(from.Charges, Use{Hour: a.at, Requests: 1, Bytes: a.bytes})
		}
	}
	return from
}

// A statement as a table has each total and all nonzero lines.
func TestStatementTable(t *testing.T) {
	day := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	s := Statement{
		Number: 3, Totals: Totals{Opening: 5, Allowance: 100, Granted: 10, Consumed: 108, Closing: 7, Overage: 1},
		Grants:  []GrantMovement{{Grant: "grt_1", Opening: 5, Issued: 10, Used: 8, Closing: 7}},
		Charges: []DayCharge{{Day: day, Project: "prj_1", Environment: "prod", Requests: 2, Entries: 4, Bytes: 101}},
		Late:    []LateCharge{{Of: day.AddDate(0, -1, -1), Bytes: 6}}, Adjustments: []AdjustmentEntry{{ID: "adj_1", Of: day.AddDate(0, 0, -1), Bytes: -2}},
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	var lines []string
	for _, line := range s.Table() {
		if len(line) != len(StatementColumns()) {
			t.Errorf("%q has %d cells", line, len(line))
		}
		lines = append(lines, strings.Join(line, ","))
	}
	for _, want := range []string{
		"3,opening,,,,,,,,5", "3,prorated,,,,,,,,0", "3,grant_used,,,,grt_1,,,,8", "3,adjustment,,,,adj_1,2026-11-01T00:00:00Z,,,-2",
		"3,late,,,,,2026-10-01T00:00:00Z,,,6", "3,charge,2026-11-02,prj_1,prod,,,2,4,101",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "grant_expired") }) {
		t.Error("a grant of which nothing expired has a line for that")
	}
}

// A statement that does not add up is found.
func TestStatementsAreChecked(t *testing.T) {
	sound := Statement{Totals: Totals{Opening: 1, Allowance: 10, Consumed: 4, Expired: 6, Closing: 1, Overage: 2},
		Grants: []GrantMovement{{Opening: 1, Closing: 1}}, Charges: []DayCharge{{Bytes: 6}}}
	if err := sound.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(s *Statement){
		"what came": func(s *Statement) { s.Totals.Opening++ }, "what was used": func(s *Statement) { s.Late = []LateCharge{{Bytes: 1}} },
		"what is left": func(s *Statement) { s.Grants = nil },
	} {
		spoiled := sound
		if spoil(&spoiled); spoiled.Check() == nil {
			t.Errorf("%s is wrong, and nothing is found", name)
		}
	}
}
