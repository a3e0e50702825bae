package postgres

import "github.com/weirlog/weir/shared/erasure"

// Erasable are the tables with what tenants have sent. The books stay: they hold ids and amounts.
func Erasable() []erasure.Table {
	return []erasure.Table{erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked()}
}
