package bus

import (
	"strconv"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
)

// Lanes defer an organization that sends more than its share: a lane is an
// organization. A record costs the bytes of its entries, which are parsed only
// if one has an error, and perError for each of those.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization, Cost: cost, MaxCost: maxCost} }

// maxCost is what one transaction costs at most: 8 MiB of ordinary records, of
// which a tenth of the entries have errors, and 4,000 new kinds.
const maxCost = 16 << 20

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// unread is the cost of a record whose entries are not parsed.
const unparsedCost = 512

// perError is what an error costs beside its text: a new kind of 100 bytes
// takes the database as long as parsing thousands. Without it one transaction
// could create all the groups that an organization's projects may have.
const errorCost = 4 << 10

func cost(record bus.Record) int {
	errors, err := strconv.Atoi(record.Header(contract.HeaderErrors))
	if err == nil && errors <= 0 {
		return unparsedCost
	}
	return unparsedCost + len(record.Value) + errorCost*min(max(errors, 0), len(record.Value)/minErrorSize)
}

// leastError is fewer bytes than any entry with an error has: what a
// header says of them is believed no further.
const minErrorSize = 32
