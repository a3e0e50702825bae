package bus

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/prune"
)

// Retention is how long untouched records are kept. Zero means the defaults.
type Retention struct {
	ParkedDays int `help:"For how many days a record that can't be applied is kept after it last failed, so that it can be applied later." env:"WEIR_PARKED_DAYS" default:"90"`
}

const (
	parkedDays    = 90 // the log has lost the record long before
	minParkedDays = 8  // the ledger accounts for every offset of the days whose ranges it keeps
)

// Validate returns what is wrong.
func (r Retention) Validate() error {
	if r.ParkedDays != 0 && r.ParkedDays < minParkedDays {
		return fmt.Errorf("WEIR_PARKED_DAYS is %d: parked records are kept for at least %d days", r.ParkedDays, minParkedDays)
	}
	return nil
}

// Tables returns the tables with old rows to delete, for a prune.Pruner.
func (r Retention) Tables(clock func() time.Time) []prune.Table {
	days := cmp.Or(r.ParkedDays, parkedDays)
	return []prune.Table{prune.Rows{
		Table: "bus_parked", Bound: fmt.Sprintf("parked records for %d days after they last failed", days), Age: "failed_at",
		Before: prune.Ago(time.Duration(days)*24*time.Hour, clock),
	}}
}

// Fixed returns the bounds of the other tables. A stopped lane stays:
// without its row, later records would be applied before its own.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "bus_positions", Keeps: "a row for each partition of a topic that is consumed", By: "the topics' partitions"},
		{Table: "bus_deferred", Keeps: "10,000 lanes of each member, stopped ones until they are resumed", By: "shared/bus/consumer"},
		{Table: "bus_relays", Keeps: "a row for each outbox", By: "shared/bus/relay"},
		{Table: "bus_read", Keeps: "a row for each partition of a topic that is kept in memory", By: "shared/bus/state"},
	}
}
