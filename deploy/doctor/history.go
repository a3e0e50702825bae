package doctor

import (
	"context"
	"fmt"

	ingest "github.com/weirlog/weir/ingest/app"
)

// history checks that ClickHouse answers, if there is one, and has the entries that moved there once.
func (c *moduleChecker) history(ctx context.Context) {
	const subject = "ClickHouse"
	var found ingest.HistoryCondition
	config := c.services.Ingest.History
	const fix = "Set WEIR_INGEST_CLICKHOUSE_URL as the processes of ingest have it, and look at ClickHouse."
	ok := c.look(ctx, "history", subject, fix, func(ctx context.Context) (err error) {
		found, err = ingest.ExamineHistory(ctx, config, c.pool, c.now)
		return err
	})
	switch {
	case !ok || config.URL == "":
	case found.Last > found.Known:
		c.report.add(Fail, "history", subject, fmt.Sprintf("it has moves up to %d, PostgreSQL knows %d", found.Last, found.Known),
			"If PostgreSQL was restored from a backup, run weir history discard.")
	case found.Rows != found.Entries:
		c.report.add(Fail, "history", subject, fmt.Sprintf("the latest moves have %d rows of %d entries", found.Rows, found.Entries),
			"Look for two installations that write into one database, and into the log of ingest.")
	default:
		c.report.add(OK, "history", subject, fmt.Sprintf("%d entries of the latest moves are there once", found.Entries), "")
	}
}
