package doctor

import (
	"context"
	"fmt"
	"time"

	ledger "github.com/weirlog/weir/ledger/app"
)

// Ages from which on checks and seals of the books are late.
const (
	lateCheck  = 10 * time.Minute
	staleCheck = time.Hour
	lateSeal   = 30 * time.Minute
)

// books checks the progress of the running checks and the chains, and
// compares the latest of both with the log.
func (c *moduleChecker) books(ctx context.Context) {
	if len(c.broker.seen.Topics) == 0 {
		return // the log is needed
	}
	var found ledger.Condition
	ok := c.look(ctx, "books", c.name, "Look at the ledger's log, and run ledger-verify.", func(ctx context.Context) (err error) {
		config := c.services.Ledger
		config.Brokers, config.BrokerAccess = c.broker.brokers, c.broker.signIn
		found, err = ledger.Examine(ctx, config, c.pool, c.now().Add(-lateSeal))
		return err
	})
	if !ok {
		return
	}
	before := len(c.report.Findings)
	for _, violation := range found.Violations {
		c.report.add(Fail, "books", c.name, fmt.Sprintf("it does not hold that %s: %s", violation.Invariant, violation.Detail),
			"Run ledger-verify, which compares everything; change nothing by hand before it is understood.")
	}
	c.checked(found)
	if found.Overdue {
		c.report.add(Fail, "books", "seals", fmt.Sprintf("an hour is not sealed that ended more than %s ago; the last is %s", lateSeal, when(found.Sealed)),
			"Look in the ledger's log for what keeps it from sealing an hour, and at the lag of ledger.quota.")
	}
	if len(c.report.Findings) == before {
		c.report.add(OK, "books", c.name, fmt.Sprintf("all is checked in %d partitions, sealed through: %s", len(found.Verified), when(found.Sealed)), "")
	}
}

// checked reports how long the oldest unchecked booking waits.
func (c *moduleChecker) checked(found ledger.Condition) {
	waits := c.now().Sub(found.Unchecked)
	if found.Unchecked.IsZero() || waits < lateCheck {
		return
	}
	level := Warn
	if waits >= staleCheck {
		level = Fail
	}
	c.report.add(level, "books", "checks", fmt.Sprintf("what was booked %s ago is not checked yet", waits.Round(time.Second)),
		"Look in the ledger's log for what keeps it from checking the books.")
}

func when(at time.Time) string {
	if at.IsZero() {
		return "no hour yet"
	}
	return at.UTC().Format(time.RFC3339)
}
