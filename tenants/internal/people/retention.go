package people

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
)

const (
	// after they ended: holders of the code get the reason
	invitationsKept = 30 * 24 * time.Hour
	// after their removal: their sessions, devices and failures are over by then
	removedKept = 100 * 24 * time.Hour
)

// Tables are the room's tables, for a prune.Pruner.
// Members are removed after what other rooms keep of them.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		prune.Rows{
			Table: "invitations", Bound: "200 open ones of an organization, and 30 days of those that are over", Age: "least(accepted_at, revoked_at, expires_at)",
			Before: prune.Ago(invitationsKept, clock),
		},
		prune.Rows{
			Table: "members", Bound: "500 of an organization, and 100 days of those who were removed", Age: "removed_at", Before: prune.Ago(removedKept, clock),
			Only: `NOT EXISTS (SELECT FROM sessions s WHERE s.organization = t.organization AND s.member = t.id)
				AND NOT EXISTS (SELECT FROM passkeys p WHERE p.organization = t.organization AND p.member = t.id)
				AND NOT EXISTS (SELECT FROM devices d WHERE d.organization = t.organization AND d.member = t.id)
				AND NOT EXISTS (SELECT FROM sign_in_failures f WHERE f.organization = t.organization AND f.member = t.id)`,
		},
	}
}
