package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus/relay"
)

// longBacklog is the largest normal backlog of a working relay, in
// rows: a second of a fast one.
const longBacklog = 10_000

// outboxes checks what is still to be published.
func (e *examination) outboxes(ctx context.Context, o opened) {
	for _, source := range o.outboxes {
		var waiting relay.Backlog
		ok := e.look(ctx, "outbox", source.Relay, "Look at the role's rights.", func(ctx context.Context) error {
			return o.read(ctx, func(tx pgx.Tx) (err error) {
				waiting, err = source.Backlog(ctx, tx)
				return err
			})
		})
		if ok {
			e.backlog(source.Relay, waiting)
			e.losses(source.Relay, waiting)
		}
	}
}

// lossShown is how long a loss is shown.
const lossShown = 7 * 24 * time.Hour

// losses shows what a log had lost though it was acknowledged.
func (e *examination) losses(name string, seen relay.Backlog) {
	if seen.Lost == "" || seen.Ago > lossShown {
		return
	}
	e.report.add(Warn, "outbox", name,
		fmt.Sprintf("%s ago the log lacked what the database has: %s; %d messages were published again so far",
			seen.Ago.Round(time.Second), seen.Lost, seen.Republished),
		"Nothing is to be done for these topics. Find out why: the brokers lost what they had acknowledged (a disk that lies, or WEIR_BROKER_SYNC=os and "+
			"a power cut), or the database is of an earlier hour, and weir resume was not run.")
}

func (e *examination) backlog(name string, waiting relay.Backlog) {
	seen := fmt.Sprintf("%d rows are to be published", waiting.Rows)
	switch {
	case waiting.Rows > 0 && !waiting.Held:
		e.report.add(Fail, "outbox", name, seen+", and no process does it", "Start the service; its log says what keeps it from the brokers.")
	case waiting.Rows >= longBacklog:
		e.report.add(Warn, "outbox", name, seen, "Look in the service's log whether the brokers refuse what it publishes, or are slow.")
	default:
		e.report.add(OK, "outbox", name, seen, "")
	}
}
