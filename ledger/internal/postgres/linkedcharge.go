package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// Transfers of charges, those of one charge together. Sorting by bytes
// takes a fifth of a language's order.
const (
	ofCharges     = `source = 0 AND reason IN (2, 4)`
	chargeColumns = `t.organization, t.partition, t."offset", t.event, t.project, t.key, t.amount, t.entries`
	chargeOrder   = `t.organization COLLATE "C", t.partition, t."offset"`
)

// forEachCharge calls each with the charges in rows of chargeColumns,
// which are in chargeOrder.
func forEachCharge(rows pgx.Rows, each func(organization string, c ledger.LinkedCharge)) error {
	var last, next struct {
		organization string
		charge       ledger.LinkedCharge
	}
	c := &next.charge
	fields := []any{&next.organization, &c.Partition, &c.Offset, &c.Event, &c.Project, &c.Key, &c.Bytes, &c.Entries}
	_, err := pgx.ForEachRow(rows, fields, func() error {
		if next.organization == last.organization && sameCharge(*c, last.charge) {
			last.charge.Bytes, last.charge.Entries = last.charge.Bytes+c.Bytes, last.charge.Entries+c.Entries
			return nil
		}
		if last.organization != "" {
			each(last.organization, last.charge)
		}
		last = next
		return nil
	})
	if err == nil && last.organization != "" {
		each(last.organization, last.charge)
	}
	return err
}

// sameCharge reports whether two transfers are of one charge. If only
// their position agrees, one was tampered with.
func sameCharge(a, b ledger.LinkedCharge) bool {
	a.Bytes, a.Entries = b.Bytes, b.Entries
	return a == b
}
