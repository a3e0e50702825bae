package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

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
func (b *Books) Lines() []Line {
	sums := map[Line]int64{}
	for _, t := range b.Transfers {
		if kind := lineKind(t); kind != 0 {
			sums[Line{Kind: kind, Start: t.Period.Start, Subject: t.Grant, Of: t.Period.Start}] += t.Amount
		}
	}
	for _, e := range b.Events {
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
