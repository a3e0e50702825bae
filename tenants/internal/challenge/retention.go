package challenge

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
)

// Table is that of challenges, for a prune.Pruner.
func Table(clock func() time.Time) prune.Table {
	return prune.Rows{
		Table: "challenges", Bound: "until they are answered or over, which is minutes", Age: "expires_at", Before: prune.Ago(0, clock), AppendOnly: true,
	}
}
