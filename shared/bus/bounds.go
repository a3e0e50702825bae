package bus

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
)

// remembered is how long an unresolved parked record stays. The log has lost it long before.
const remembered = 90 * 24 * time.Hour

// Tables are those that age, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		prune.Rows{Table: "bus_parked", Bound: "parked records for 90 days after they last failed", Age: "failed_at", Before: prune.Ago(remembered, clock)},
	}
}

// Fixed are the bounds of the other tables. A stopped lane stays: its last records may be in the
// log, and would be applied without those before them if nothing marked it as stopped.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "bus_positions", Keeps: "a row for each partition of a topic that is consumed", By: "the topics' partitions"},
		{Table: "bus_deferred", Keeps: "10,000 lanes of each member, stopped ones until somebody resumes them", By: "shared/bus/consumer"},
		{Table: "bus_relays", Keeps: "a row for each outbox", By: "shared/bus/relay"},
	}
}
