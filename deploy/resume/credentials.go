package resume

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// settleCredentials makes the log and a database of an earlier hour agree:
// what was revoked since stays so, and credentials made since are withdrawn,
// as nobody could revoke them.
func (i *installation) settleCredentials(ctx context.Context, out io.Writer) error {
	return pg.InTxAsSystem(ctx, i.pools["tenants"], func(tx pgx.Tx) error {
		revoked, forgotten, err := tenants.SettleCredentials(ctx, i.pools["tenants"], tx, i.brokers, i.dialer, time.Now())
		if err != nil {
			return fmt.Errorf("tenants: cannot settle credentials with the log: %w", err)
		}
		if len(revoked) > 0 {
			if _, err := fmt.Fprintf(out, "\nRevoked again, as the log has it: %s.\n", strings.Join(revoked, ", ")); err != nil {
				return err
			}
		}
		if forgotten > 0 {
			_, err = fmt.Fprintf(out, "\nTaken back: %d credentials (keys, tokens, sessions) of which the database of tenants does not know this state.\n", forgotten)
		}
		return err
	})
}
