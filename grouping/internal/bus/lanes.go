package bus

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
)

// Lanes defer an organization that sends more than its share: a lane is an organization. A record
// costs the bytes of its entries, which are parsed only if one has an error.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization, Cost: cost} }

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// unread is the cost of a record whose entries are not parsed.
const unread = 512

func cost(record bus.Record) int {
	if record.Header(contract.HeaderErrors) == "0" {
		return unread
	}
	return unread + len(record.Value)
}
