package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// ErrNoStatement is the error for an unknown statement.
var ErrNoStatement = errors.New("no such statement")

// A Statement is the result of a closed period. It is made once and
// never changes. Sizes are bytes.
type Statement struct {
	Organization string
	Number       int64 // from 1, without gaps
	Test         bool  // of a test organization: nothing is owed
	Period       calendar.Period
	Made         time.Time
	StatementTerms
	Totals      Totals
	Grants      []GrantMovement
	ChargedBy   []string // what charges are split by, beside days
	Charges     []DayCharge
	Late        []LateCharge
	Adjustments []AdjustmentEntry
	Chain       Head // of the organization's chain when the period closed
	Previous    Hash // of the statement before; zero for the first
	Hash        Hash // of all of it
}

// StatementTerms are the terms of the plan at the end of a period.
type StatementTerms struct {
	Tier              Tier
	Quota             int64
	RequestsPerMinute int
	Overage           bool  // requests beyond the allowance were charged as overage
	OverageCap        int64 // most overage, in bytes; 0: unlimited
}

// Sealed returns the statement with its hash, which covers the statement
// before. content is the statement as it is stored, without its place.
func (s Statement) Sealed(content []byte) Statement {
	d := newDigest(statementForm)
	d.hash(s.Previous)
	d.text(s.Organization)
	d.number(s.Number, s.Period.Start.UnixMicro(), s.Period.End.UnixMicro(), s.Made.UnixMicro())
	d.text(string(content))
	s.Hash = d.sum()
	return s
}

// Totals are the sums of a statement: Opening + Allowance + Prorated +
// Granted = Consumed + Expired + Voided + Closing.
type Totals struct {
	Opening   int64 // left of grants at the start
	Allowance int64 // of the plan
	Prorated  int64 // of a larger plan, for the rest of the period
	Granted   int64 // by grants that began
	Consumed  int64 // used and covered
	Overage   int64 // used and uncovered
	Overshoot int64 // accepted beyond what the plan allows: the operator's
	Expired   int64
	Voided    int64
	Closing   int64 // left of grants at the end; negative if it used a grant backdated later
}

// A GrantMovement is a grant's change in a period.
type GrantMovement struct {
	Grant                                           string
	Opening, Issued, Used, Expired, Voided, Closing int64
}

// A DayCharge is the accepted use of a day (UTC).
type DayCharge struct {
	Day         time.Time
	Project     string // empty, like Environment: of any
	Environment string
	Requests    int64
	Entries     int64
	Bytes       int64
}

// A LateCharge is use accepted in a period that was closed when it came.
type LateCharge struct {
	Of    time.Time // start of that period
	Bytes int64
}

// An AdjustmentEntry is an adjustment: credited bytes, or if negative
// charged ones.
type AdjustmentEntry struct {
	ID    string
	Of    time.Time // start of the corrected period
	Bytes int64
}

// Sources are what a statement needs besides the books.
type Sources struct {
	Lines     []Line  // of the period and later ones
	Grants    []Grant // as they are now
	Charges   []Use   // by day
	ChargedBy []string
}

// Statement makes the statement of a period that has just closed; made
// is false where its first lines are gone.
func (b *Books) Statement(closed Event, from Sources, at time.Time) (s Statement, made bool) {
	period := closed.Book.Period
	plan := b.Organization.Plans.At(period.End.Add(-instant))
	terms := plan.Terms()
	s = Statement{
		Organization: b.Organization.ID, Number: b.Organization.Statements + 1, Previous: b.Organization.Stated,
		Test: b.Organization.IsTest(), Period: period, Made: b.Organization.Now(at),
		StatementTerms: StatementTerms{
			Tier: plan.Tier, Quota: terms.Quota, RequestsPerMinute: terms.RequestsPerMinute, Overage: plan.Overage, OverageCap: plan.OverageCap,
		}, ChargedBy: from.ChargedBy, Grants: movements(from, period.Start),
		Totals: totals(closed.Book.Balances, b.carriedOver(period.End)),
	}
	if b.Chain != nil {
		s.Chain = *b.Chain
	}
	s.charge(from.Charges)
	known := s.enter(from.Lines)
	return s, known
}

func totals(balances Balances, closing int64) Totals {
	return Totals{
		Opening: closing - balances[Credit], Consumed: balances[Consumed], Overage: balances[Overage], Overshoot: balances[Overshoot],
		Expired: balances[Expired], Voided: balances[Voided], Closing: closing,
	}
}

func (s *Statement) charge(uses []Use) {
	for _, u := range uses {
		s.Charges = append(s.Charges, DayCharge{u.Hour, u.Project, u.Environment, u.Requests, u.Entries, u.Bytes})
	}
	slices.Reverse(s.Charges) // usage has the latest first
}

// enter adds the lines of the period; known is false where its first are missing.
func (s *Statement) enter(lines []Line) (known bool) {
	for _, l := range lines {
		if !l.Start.Equal(s.Period.Start) {
			continue
		}
		switch l.Kind {
		case AllowanceIssued:
			known = true
			s.Totals.Allowance += l.Bytes
		case AllowanceProrated:
			s.Totals.Prorated += l.Bytes
		case GrantIssued:
			s.Totals.Granted += l.Bytes
		case ChargedLate:
			s.Late = append(s.Late, LateCharge{l.Of, l.Bytes})
		case AdjustmentMade:
			s.Adjustments = append(s.Adjustments, AdjustmentEntry{l.Subject, l.Of, l.Bytes})
		}
	}
	return known
}

// movements returns the changes of grants in the period that began at
// start, in order. Past remainders follow from the present ones and the
// lines since.
func movements(from Sources, start time.Time) (all []GrantMovement) {
	in, since := map[string]*GrantMovement{}, map[string]int64{}
	for _, l := range from.Lines {
		if l.Start.After(start) {
			since[l.Subject] += l.grown()
			continue
		}
		if in[l.Subject] == nil {
			in[l.Subject] = &GrantMovement{}
		}
		in[l.Subject].add(l)
	}
	for _, g := range from.Grants {
		m := GrantMovement{Grant: g.ID, Closing: g.Remaining - since[g.ID]}
		if moved := in[g.ID]; moved != nil {
			m.Issued, m.Used, m.Expired, m.Voided = moved.Issued, moved.Used, moved.Expired, moved.Voided
		}
		m.Opening = m.Closing - m.Issued + m.Used + m.Expired + m.Voided
		if m != (GrantMovement{Grant: g.ID}) {
			all = append(all, m)
		}
	}
	return all
}

func (m *GrantMovement) add(l Line) {
	switch l.Kind {
	case GrantIssued:
		m.Issued += l.Bytes
	case GrantUsed:
		m.Used += l.Bytes
	case GrantLapsed:
		m.Expired += l.Bytes
	case GrantTakenBack:
		m.Voided += l.Bytes
	}
}

// grown returns by how much a line raised what is left of its grant.
func (l Line) grown() int64 {
	switch l.Kind {
	case GrantIssued:
		return l.Bytes
	case GrantUsed, GrantLapsed, GrantTakenBack:
		return -l.Bytes
	}
	return 0
}

// Issued notes a statement, which follows the close of its period.
func (b *Books) Issued(s Statement, closed Event) {
	b.Organization.Statements, b.Organization.Stated = s.Number, s.Hash
	b.Events = append(b.Events, s.Ready(closed))
}

// Ready returns the event of a new statement.
func (s Statement) Ready(closed Event) Event {
	cause := closed.Cause
	cause.At = s.Made
	return Event{Kind: StatementReady, Organization: s.Organization, Book: closed.Book, Cause: cause, Number: s.Number, Hash: s.Hash}
}

// Check returns the contradictions in a statement.
func (s Statement) Check() error {
	t := s.Totals
	if in, out := t.Opening+t.Allowance+t.Prorated+t.Granted, t.Consumed+t.Expired+t.Voided+t.Closing; in != out {
		return fmt.Errorf("statement %d of organization %q: %d bytes came, and %d are accounted for", s.Number, s.Organization, in, out)
	}
	if charged, used := s.Charged(), t.Consumed+t.Overage+t.Overshoot; charged != used {
		return fmt.Errorf("statement %d of organization %q: %d bytes were charged, and %d used", s.Number, s.Organization, charged, used)
	}
	left := t.Closing
	for _, g := range s.Grants {
		left -= g.Closing
	}
	if left != 0 {
		return fmt.Errorf("statement %d of organization %q: grants have %d bytes less left than the period", s.Number, s.Organization, left)
	}
	return nil
}

// Charged returns the bytes accepted in the period, of its own days and
// late, and charged by adjustments.
func (s Statement) Charged() (bytes int64) {
	for _, c := range s.Charges {
		bytes += c.Bytes
	}
	for _, l := range s.Late {
		bytes += l.Bytes
	}
	for _, a := range s.Adjustments {
		bytes += max(0, -a.Bytes)
	}
	return bytes
}

// ByProject returns the charges of the period's own days by project.
// Where they are not split by project, there is one without.
func (s Statement) ByProject() (projects []DayCharge) {
	at := map[string]int{}
	for _, c := range s.Charges {
		i, known := at[c.Project]
		if !known {
			i, at[c.Project] = len(projects), len(projects)
			projects = append(projects, DayCharge{Project: c.Project})
		}
		p := &projects[i]
		p.Requests, p.Entries, p.Bytes = p.Requests+c.Requests, p.Entries+c.Entries, p.Bytes+c.Bytes
	}
	slices.SortFunc(projects, func(a, b DayCharge) int { return cmp.Compare(a.Project, b.Project) })
	return projects
}

// Adjusted returns the bytes that adjustments of the period gave back;
// below zero: charged.
func (s Statement) Adjusted() (bytes int64) {
	for _, a := range s.Adjustments {
		bytes += a.Bytes
	}
	return bytes
}

// A LineKind is what a Line sums. Its numbers are stored.
type LineKind uint8

// The kinds of lines.
const (
	AllowanceIssued   LineKind = 1 // of the plan
	AllowanceProrated LineKind = 2 // of a larger plan, for the rest of the period
	GrantIssued       LineKind = 3
	GrantUsed         LineKind = 4
	GrantLapsed       LineKind = 5
	GrantTakenBack    LineKind = 6
	ChargedLate       LineKind = 7 // accepted in a closed period
	AdjustmentMade    LineKind = 8
)

// A Line is a sum of a period besides the use of its allowance. Lines
// that differ only in Bytes are added up.
type Line struct {
	Kind    LineKind
	Start   time.Time // of the period
	Subject string    // id of the grant or the adjustment; empty: of none
	Of      time.Time // start of the corrected period; else Start
	Bytes   int64     // negative for a charging AdjustmentMade
}

// Lines returns what opened books add to statements, in one order.
func (j *journal) Lines() []Line {
	sums := map[Line]int64{}
	for _, t := range j.Transfers {
		if kind := lineKind(t); kind != 0 {
			sums[Line{Kind: kind, Start: t.Period.Start, Subject: t.Grant, Of: t.Period.Start}] += t.Amount
		}
	}
	for _, e := range j.Events {
		if e.Kind == BooksAdjusted {
			line := e.line()
			bytes := line.Bytes
			line.Bytes = 0
			sums[line] += bytes
		}
	}
	return sorted(sums)
}

// lineKind is 0 for use of the allowance and overage, which charges detail.
func lineKind(t Transfer) LineKind {
	switch {
	case t.From == Issuer && t.To == Allowance && t.Reason == Prorated:
		return AllowanceProrated
	case t.From == Issuer && t.To == Allowance:
		return AllowanceIssued
	case t.From == Issuer && t.To == Credit:
		return GrantIssued
	case t.From == Credit && t.To == Consumed:
		return GrantUsed
	case t.From == Credit && t.To == Expired:
		return GrantLapsed
	case t.From == Credit && t.To == Voided:
		return GrantTakenBack
	}
	return 0
}

// line returns the line of a BooksAdjusted. Late charges are one line
// for each period of acceptance.
func (e Event) line() Line {
	line := Line{Kind: AdjustmentMade, Start: e.Book.Period.Start, Subject: e.Subject, Of: e.Of, Bytes: e.Amount}
	if line.Of.IsZero() {
		line.Of = line.Start
	}
	if e.Cause.Source == FromLogs {
		line.Kind, line.Subject, line.Bytes = ChargedLate, "", -e.Amount
	}
	return line
}

func sorted(sums map[Line]int64) []Line {
	lines := slices.SortedFunc(maps.Keys(sums), Line.compare)
	for i := range lines {
		lines[i].Bytes = sums[lines[i]]
	}
	return lines
}

func (l Line) compare(other Line) int {
	return cmp.Or(l.Start.Compare(other.Start), cmp.Compare(l.Kind, other.Kind), cmp.Compare(l.Subject, other.Subject), l.Of.Compare(other.Of))
}

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
