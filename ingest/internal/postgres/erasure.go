package postgres

import "github.com/weirlog/weir/shared/erasure"

// Erasable are the tables with what tenants have sent, in the
// order in which they are erased.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Partitions("blocks", erasure.OfProject), erasure.Rows("block_days", erasure.OfOrganization), erasure.Rows("small_blocks", erasure.OfProject),
		erasure.Rows("merged_blocks", erasure.OfProject), erasure.Rows("merge_counts", erasure.OfOrganization),
		erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked(),
	}
}
