package bus

import (
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// RelayName names the relay's cursor in the outbox. It is
// stored: another name would publish everything again.
const RelayName = "grouping.facts"

// Outbox is the outbox of weir.grouping.v1.
func Outbox() outbox.Outbox {
	return outbox.Outbox{Topic: contract.TopicGrouping, Source: "weir/grouping"}
}
