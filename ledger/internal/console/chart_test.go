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
	if c.Total != 650 || c.Max != 400 || fmt.Sprint(c.Series) != "[{project b b 0 351} {project a a 1 300}]" {
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
	for _, outcome := range []string{"rejected", "rate_limited", "quota_exceeded", "overloaded", "dropped_by_client", "dropped_by_rule"} {
		if outcomeText(outcome) == outcome {
			t.Errorf("%s has no words", outcome)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1.5 KiB": 1536, "20 GiB": 20 << 30, "2GiB": 2 << 30, "0.5 TiB": 1 << 39, "1001 B": 1001, "72057594037927936": ledger.MaxGrant, "65536 TiB": ledger.MaxGrant,
		"": 0, "0": 0, "-1": 0, "0.5": 0, "NaN": 0, "Inf GiB": 0, "1 KB": 0, "GiB": 0, "72057594037927937": 0, "65537 TiB": 0, "9223372036854775807 TiB": 0,
	} {
		got, ok := parseSize(text)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q is %d, %t, want %d", text, got, ok, want)
		}
	}
	for _, size := range []int64{1, 1000, 1536, 3 << 30, ledger.MaxGrant, ledger.MaxGrant - 1} {
		if got, ok := parseSize(sizeText(size)); !ok || got != size {
			t.Errorf("%d is written %q, which reads as %d", size, sizeText(size), got)
		}
	}
}

// The bar is never longer than the whole, is full only at the end, and
// never overflows.
func TestThousandths(t *testing.T) {
	for _, c := range []struct{ part, whole, want int64 }{
		{0, 1000, 0}, {1, 1000, 1}, {999, 1000, 999}, {9999, 10000, 999}, {1000, 1000, 1000}, {2000, 1000, 1000}, {5, 0, 0}, {-5, 10, 0},
		{math.MaxInt64 - 1, math.MaxInt64, 1000}, {math.MaxInt64 / 2, math.MaxInt64, 500}, {500 << 30 / 2, 500 << 30, 500},
	} {
		if got := thousandths(c.part, c.whole); got < c.want-1 || got > c.want {
			t.Errorf("%d of %d: got %d, want %d", c.part, c.whole, got, c.want)
		}
	}
}

// Every reason has a text.
func TestWords(t *testing.T) {
	for reason := ledger.Issued; reason <= ledger.Settled; reason++ {
		if reasonText(reason) == reason.String() {
			t.Errorf("%s has no words", reason)
		}
	}
}
