package console

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Columns stack the largest series from the bottom without gaps, the
// highest to the top. Series without their own color are one.
func TestChart(t *testing.T) {
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	starts := []time.Time{day, day.AddDate(0, 0, 1), day.AddDate(0, 0, 2)}
	uses := []ledger.Use{
		{Hour: day, Project: "b", Bytes: 100}, {Hour: day, Project: "a", Bytes: 300}, {Hour: starts[2], Project: "b", Bytes: 250},
		{Hour: day.AddDate(0, 1, 0), Project: "b", Bytes: 1}, // outside
	}
	c := newChart(uses, postgres.ByProject, starts, func(id string) string { return "project " + id })
	if c.Total != 650 || c.Max != 400 || fmt.Sprint(c.Series) != "[{project b 0 351} {project a 1 300}]" {
		t.Errorf("%d in all, at most %d, of %v", c.Total, c.Max, c.Series)
	}
	want := "[{0 0 150 329 50} {1 0 0 329 150}] [] [{0 666 75 329 125}]"
	if got := fmt.Sprint(c.Columns[0].Parts, c.Columns[1].Parts, c.Columns[2].Parts); got != want {
		t.Errorf("drawn as %s, want %s", got, want)
	}
	for i := range 10 {
		uses = append(uses, ledger.Use{Hour: day, Project: fmt.Sprint("small ", i), Bytes: 1})
	}
	c = newChart(uses, postgres.ByProject, starts, func(id string) string { return id })
	if len(c.Series) != maxSeries+1 || c.Series[maxSeries].Name != "all others" || c.Series[maxSeries].Total != 6 {
		t.Errorf("series %v", c.Series)
	}
}

// Outcomes are counted in requests. Nothing overflows or divides by zero.
func TestChartOfOutcomes(t *testing.T) {
	hour := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	uses := []ledger.Use{
		{Hour: hour, Outcome: "accepted", Requests: math.MaxInt64 / 4, Bytes: 1}, {Hour: hour, Outcome: "rejected", Requests: math.MaxInt64 / 4, Bytes: math.MaxInt64},
		{Hour: hour, Outcome: "overloaded", Bytes: 5},
	}
	c := newChart(uses, postgres.ByOutcome, []time.Time{hour}, outcomeText)
	parts := c.Columns[0].Parts
	if c.Of != "requests" || len(c.Series) != 2 || len(parts) != 2 || parts[0].Height+parts[1].Height != chartHeight || parts[1].Y != 0 {
		t.Errorf("%s of %v: %v", c.Of, c.Series, c.Columns)
	}
	if empty := newChart(nil, postgres.ByKey, []time.Time{hour}, outcomeText); !empty.Empty() || len(empty.Columns) != 1 || empty.Columns[0].Parts != nil {
		t.Errorf("of nothing: %+v", empty)
	}
}

// Every outcome has a text.
func TestOutcomeWords(t *testing.T) {
	for _, outcome := range []string{"rejected", "rate_limited", "quota_exceeded", "overloaded"} {
		if outcomeText(outcome) == outcome {
			t.Errorf("%s has no words", outcome)
		}
	}
}
