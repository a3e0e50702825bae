package console

import (
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
)

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
