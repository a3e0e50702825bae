package ledger

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// What would become of a request is what the books and ingest make of one.
func TestTrial(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	plan, soft := Plan{Tier: Indie}, Plan{Tier: Indie, Overage: true, OverageCap: 20}
	book := func(left, used, overage, pool int64) Book {
		b := Book{Period: calendar.PeriodAt(at, 1), Pool: pool}
		b.Balances[Allowance], b.Balances[Consumed], b.Balances[Overage] = left, used, overage
		return b
	}
	refused := book(70, 30, 0, 0)
	refused.Refused = 100
	for name, test := range map[string]struct {
		plan      Plan
		suspended bool
		book      Book
		bytes     int64
		want      Trial
	}{
		"fits":                     {plan, false, book(70, 30, 0, 0), 69, Trial{69, "", 69, 0, 1, false}},
		"takes the last":           {plan, false, book(70, 30, 0, 0), 70, Trial{70, "", 70, 0, 0, true}},
		"takes more":               {plan, false, book(70, 30, 0, 0), 71, Trial{71, RuleQuota, 0, 0, 70, true}},
		"with a grant":             {plan, false, book(0, 100, 0, 50), 40, Trial{40, "", 40, 0, 10, false}},
		"overage":                  {soft, false, book(10, 90, 0, 0), 25, Trial{25, "", 10, 15, 0, false}},
		"overage to its cap":       {soft, false, book(10, 90, 0, 0), 30, Trial{30, "", 10, 20, 0, true}},
		"overage beyond its cap":   {soft, false, book(0, 100, 15, 0), 6, Trial{6, RuleQuota, 0, 0, 0, true}},
		"suspended":                {plan, true, book(70, 30, 0, 0), 1, Trial{1, RuleSuspended, 0, 0, 70, false}},
		"exhausted with some left": {plan, false, refused, 1, Trial{1, RuleExhausted, 0, 0, 70, false}},
	} {
		o := Organization{ID: "acme", Plans: Plans{test.plan}, Suspended: test.suspended}
		if got := o.Try(test.book, test.bytes, at); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	o := Organization{ID: "acme", Plans: Plans{plan}}
	if remedy := smallTiers().RemedyOf(o, book(70, 30, 0, 0), 75, at); remedy.Grant != 5 {
		t.Errorf("remedy %+v", remedy)
	}
}
