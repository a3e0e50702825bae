package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// anchorAtEnd moves the anchor to the last line, so that all may go.
const anchorAtEnd = `INSERT INTO audit_anchors AS a (organization, sequence, position, hash, at)
	SELECT organization, sequence, position, hash, at FROM audit_events WHERE organization = $1 ORDER BY sequence DESC LIMIT 1
	ON CONFLICT (organization) DO UPDATE SET sequence = excluded.sequence, position = excluded.position, hash = excluded.hash, at = excluded.at`

// Forget removes what is left of a long deleted organization: the
// places of its events, and its last line. tx must act as the system.
func Forget(ctx context.Context, tx pgx.Tx, organization string) error {
	for _, statement := range []string{
		anchorAtEnd, `DELETE FROM audit_events WHERE organization = $1`, `DELETE FROM audit_anchors WHERE organization = $1`,
		`DELETE FROM events WHERE organization = $1`,
	} {
		if _, err := tx.Exec(ctx, statement, organization); err != nil {
			return fmt.Errorf("cannot forget the audit of %q: %w", organization, err)
		}
	}
	return nil
}
