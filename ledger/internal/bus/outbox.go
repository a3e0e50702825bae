package bus

import (
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// RelayName names the relay's cursor in the outbox. It is data:
// another name would publish everything again.
const RelayName = "ledger.facts"

// Outbox is the outbox of weir.ledger.v1.
func Outbox() outbox.Outbox { return outbox.Outbox{Topic: contract.TopicLedger, Source: source} }
