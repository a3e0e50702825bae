package bus

import (
	"strconv"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
)

// Lanes defers organizations that send more than their share: each
// is a lane. A record costs the bytes of its entries, if they are
// parsed because one has an error, and errorCost for each error.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization, Cost: cost, MaxCost: maxCost} }

// maxCost bounds one transaction: 8 MiB of ordinary records
// with errors in a tenth of the entries, and 4,000 new kinds.
const maxCost = 16 << 20

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// unparsedCost is the cost of an unparsed record.
const unparsedCost = 512

// errorCost is the cost of an error beside its text: to store a new
// kind of 100 bytes takes as long as to parse thousands. Without it one
// transaction could create all groups that an organization may have.
const errorCost = 4 << 10

func cost(record bus.Record) int {
	errors, err := strconv.Atoi(record.Header(contract.HeaderErrors))
	if err == nil && errors <= 0 {
		return unparsedCost
	}
	return unparsedCost + len(record.Value) + errorCost*min(max(errors, 0), len(record.Value)/minErrorSize)
}

// minErrorSize is fewer bytes than any entry with an
// error has: a header may claim no more errors than fit.
const minErrorSize = 32
