package ledger

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A dry run matches the outcome in books and ingest.
func TestTrial(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	plan, soft := seeded(Plan{Tier: Indie}), seeded(Plan{Tier: Indie, Overage: true, OverageCap: 20})
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
		want      DryRun
	}{
		"fits":                     {plan, false, book(70, 30, 0, 0), 69, DryRun{69, "", 69, 0, 1, false, Budget{}}},
		"takes the last":           {plan, false, book(70, 30, 0, 0), 70, DryRun{70, "", 70, 0, 0, true, Budget{}}},
		"takes more":               {plan, false, book(70, 30, 0, 0), 71, DryRun{71, RuleQuota, 0, 0, 70, true, Budget{}}},
		"with a grant":             {plan, false, book(0, 100, 0, 50), 40, DryRun{40, "", 40, 0, 10, false, Budget{}}},
		"overage":                  {soft, false, book(10, 90, 0, 0), 25, DryRun{25, "", 10, 15, 0, false, Budget{}}},
		"overage to its cap":       {soft, false, book(10, 90, 0, 0), 30, DryRun{30, "", 10, 20, 0, true, Budget{}}},
		"overage beyond its cap":   {soft, false, book(0, 100, 15, 0), 6, DryRun{6, RuleQuota, 0, 0, 0, true, Budget{}}},
		"suspended":                {plan, true, book(70, 30, 0, 0), 1, DryRun{1, RuleSuspended, 0, 0, 70, false, Budget{}}},
		"exhausted with some left": {plan, false, refused, 1, DryRun{1, RuleExhausted, 0, 0, 70, false, Budget{}}},
	} {
		o := Organization{ID: "acme", Plans: Plans{test.plan}, Suspended: test.suspended}
		if got := o.Try(test.book, test.bytes, at); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	o := Organization{ID: "acme", Plans: Plans{plan}}
	if resolution := smallTiers().ResolutionOf(o, book(70, 30, 0, 0), 75, at); resolution.Grant != 5 {
		t.Errorf("resolution %+v", resolution)
	}
}

// A budget refuses requests of its project or key alone, even within the quota.
func TestTrialUnderBudgets(t *testing.T) {
	fits := DryRun{Bytes: 30, Covered: 30, Remaining: 40}
	shop, keys := Budget{Spender: Spender{Project: "shop"}, Bytes: 50, Used: 20}, Budget{Spender: Spender{Key: "k"}, Bytes: 50, Used: 21}
	refused := Budget{Spender: Spender{Project: "shop"}, Bytes: 90, Used: 20, Refused: 90}
	none := DryRun{Bytes: 30, Rule: RuleQuota, Remaining: 7, Exhausts: true}
	for name, test := range map[string]struct {
		dryRun       DryRun
		budgets      []Budget
		project, key string
		want         DryRun
	}{
		"none":                        {fits, nil, "shop", "k", fits},
		"that of the project fits":    {fits, []Budget{shop, keys}, "shop", "other", fits},
		"that of the key does not":    {fits, []Budget{shop, keys}, "shop", "k", DryRun{Bytes: 30, Rule: RuleBudget, Remaining: 70, Exhausts: true, Budget: keys}},
		"it is exhausted":             {fits, []Budget{refused}, "shop", "k", DryRun{Bytes: 30, Rule: RuleBudget, Remaining: 70, Exhausts: true, Budget: refused}},
		"those of others":             {fits, []Budget{keys, refused}, "", "", fits},
		"the quota refuses it anyhow": {none, []Budget{keys}, "shop", "k", none},
	} {
		if got := test.dryRun.Under(test.budgets, test.project, test.key); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
