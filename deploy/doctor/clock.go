package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/pg"
)

// Largest differences of clocks: sessions and periods end by them, and
// prune stops from an hour on.
const (
	warnSkew = 2 * time.Second
	failSkew = time.Minute
)

const clockFix = "Let both machines follow the same time servers (chrony, systemd-timesyncd)."

// databaseClock compares this machine's clock with the database's.
func (e *examination) databaseClock(ctx context.Context, o opened) {
	e.look(ctx, "clock", o.name, "Look at the server's log.", func(ctx context.Context) error {
		ahead, err := pg.ClockAhead(ctx, o.pool, e.Machine.Clock)
		if err != nil {
			return err
		}
		e.skew(o.name, ahead)
		return nil
	})
}

func (e *examination) skew(subject string, ahead time.Duration) {
	seen := fmt.Sprintf("this machine's clock is %s ahead of the database's", ahead.Round(time.Millisecond))
	switch by := ahead.Abs(); {
	case by >= failSkew:
		e.report.add(Fail, "clock", subject, seen, clockFix)
	case by >= warnSkew:
		e.report.add(Warn, "clock", subject, seen, clockFix)
	default:
		e.report.add(OK, "clock", subject, seen, "")
	}
}

// producers compares the newest record with this machine's clock, as
// brokers report no time: a future record comes from a machine whose
// clock is ahead.
func (e *examination) producers(newest time.Time) {
	const subject = "producers"
	ahead := newest.Sub(e.now())
	seen := fmt.Sprintf("the newest record is of %s", newest.Format(time.RFC3339))
	switch {
	case newest.IsZero():
		e.report.add(OK, "clock", subject, "there is no record to compare with", "")
	case ahead >= failSkew:
		e.report.add(Fail, "clock", subject, fmt.Sprintf("%s, %s in the future", seen, ahead.Round(time.Second)), clockFix)
	case ahead >= warnSkew:
		e.report.add(Warn, "clock", subject, fmt.Sprintf("%s, %s in the future", seen, ahead.Round(time.Second)), clockFix)
	default:
		e.report.add(OK, "clock", subject, seen, "")
	}
}
