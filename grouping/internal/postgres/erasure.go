package postgres

import "github.com/weirlog/weir/shared/erasure"

// ofGroups is for tables whose rows name only a group.
const ofGroups = `organization = $1 AND ($2 = '' OR error_group IN (SELECT id FROM error_groups WHERE organization = $1 AND project = $2))`

// Erasable are the tables of groups, in the order of erasure:
// groups are last, because samples are found by them.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Rows("occurrences", ofGroups), erasure.Rows("group_hashes", erasure.OfProject), erasure.Rows("group_budgets", erasure.OfProject),
		erasure.Rows("group_packages", erasure.OfProject),
		erasure.Rows("facts", `organization = $1 AND ($2 = '' OR body->>'project' = $2)`), erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked(),
		erasure.Rows("error_groups", erasure.OfProject),
	}
}
