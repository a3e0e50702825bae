package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus/parked"
)

// parked looks for records that no consumer could apply.
func (e *examination) parked(ctx context.Context, o opened) {
	var count int64
	var oldest time.Time
	ok := e.look(ctx, "parked", o.name, "Look at the role's rights.", func(ctx context.Context) error {
		return o.read(ctx, func(tx pgx.Tx) (err error) {
			count, oldest, err = parked.Count(ctx, tx)
			return err
		})
	})
	switch {
	case !ok:
	case count > 0:
		e.report.add(Warn, "parked", o.name, fmt.Sprintf("%d records could not be applied, the first at %s", count, oldest.Format(time.RFC3339)),
			"weir parked list shows why; repair the cause, then weir parked replay.")
	default:
		e.report.add(OK, "parked", o.name, "no record is parked", "")
	}
}
