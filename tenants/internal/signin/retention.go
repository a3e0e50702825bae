package signin

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
)

const (
	sessionsKept = 24 * time.Hour // after their expiry
	failuresKept = 24 * time.Hour // after their report, which exceeds the interval of reports
)

// Tables are the room's tables, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	now := prune.Ago(0, clock)
	return []prune.Table{
		prune.Rows{
			Table: "sessions", Bound: "20 open ones of each member, and a day of those that have expired", Age: "expires_at",
			Before: prune.Ago(sessionsKept, clock),
		},
		prune.Rows{Table: "devices", Bound: "10 of each member, until they expire", Age: "expires_at", Before: now, AppendOnly: true},
		prune.Rows{
			Table: "sign_in_failures", Bound: "a row for each member who has some, until a day after they were reported", Age: "told_at",
			Before: prune.Ago(failuresKept, clock), Only: "failed + refused = 0",
		},
		prune.Rows{
			Table: "passkeys", Bound: "20 of each member", Age: "created_at", Before: now,
			Only: `EXISTS (SELECT FROM members m WHERE m.organization = t.organization AND m.id = t.member AND m.removed_at IS NOT NULL)`,
		},
	}
}
