package bus

import (
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// RelayName names the relay's cursor in the outbox. It is stored:
// another name would publish everything again.
const RelayName = "ledger.facts"

// Outbox returns the outbox of weir.ledger.v1.
func Outbox() outbox.Outbox { return outbox.Outbox{Topic: contract.TopicLedger, Source: source} }
