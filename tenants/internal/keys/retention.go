package keys

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants/internal/retention"
)

// Tables are those of the room, for a prune.Pruner.
func Tables(clock func() time.Time, forget retention.Forget) []prune.Table {
	return []prune.Table{
		retention.Credentials{
			Table: "api_keys", Bound: "1,000 in force of an organization, and 90 days of those that have ended",
			Ended: "least(revoked_at, expires_at)", Clock: clock, Forget: forget,
		},
		ofGoneKeys("api_key_usage", "a row for each API key", clock),
		ofGoneKeys("api_key_users", "the 20 newest users of each API key", clock),
	}
}

func ofGoneKeys(table, keeps string, clock func() time.Time) prune.Rows {
	return prune.Rows{
		Table: table, Bound: keeps, Age: "last_used_at", Before: prune.Ago(0, clock),
		Only: `NOT EXISTS (SELECT FROM api_keys k WHERE k.organization = t.organization AND k.id = t.api_key)`,
	}
}
