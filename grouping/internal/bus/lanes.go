package bus

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
)

// Lanes keep organizations from waiting for each other. A record costs what there is to read in it.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization, Cost: cost} }

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// unread is what a record costs whose entries nobody looks at.
const unread = 512

func cost(record bus.Record) int {
	if record.Header(contract.HeaderErrors) == "0" {
		return unread
	}
	return unread + len(record.Value)
}
