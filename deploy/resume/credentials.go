package resume

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// forgetUnknown withdraws credentials that are newer than tenants'
// database: they would stay valid, and nobody could revoke them.
func (i *installation) forgetUnknown(ctx context.Context, out io.Writer) error {
	return pg.InTxAsSystem(ctx, i.pools["tenants"], func(tx pgx.Tx) error {
		forgotten, err := tenants.ForgetUnknown(ctx, tx, i.brokers, i.dialer, time.Now())
		if err != nil {
			return fmt.Errorf("tenants: cannot take back the credentials that it does not know: %w", err)
		}
		if forgotten > 0 {
			_, err = fmt.Fprintf(out, "\nTaken back: %d credentials (keys, tokens, sessions) of which the database of tenants does not know this state.\n", forgotten)
		}
		return err
	})
}
