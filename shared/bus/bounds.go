package bus

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
)

// remembered is how long it is kept that a record could not be applied, or that a lane was stopped, and nobody has done anything about it.
// The log has long lost the records of both by then.
const remembered = 90 * 24 * time.Hour

// Tables are those that age, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		prune.Rows{Table: "bus_parked", Bound: "parked records for 90 days after they last failed", Age: "failed_at", Before: prune.Ago(remembered, clock)},
		prune.Rows{
			Table: "bus_deferred", Bound: "10,000 lanes of each member, and lanes that were stopped for 90 days", Age: "since",
			Before: prune.Ago(remembered, clock), Only: "halted IS NOT NULL",
		},
	}
}

// Fixed are the bounds of the others.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "bus_positions", Keeps: "a row for each partition of a topic that is consumed", By: "the topics' partitions"},
		{Table: "bus_relays", Keeps: "a row for each outbox", By: "shared/bus/relay"},
	}
}
