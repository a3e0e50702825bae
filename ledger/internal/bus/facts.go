package bus

import (
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// RelayName owns the cursor of the facts.
const RelayName = "ledger.facts"

// Facts is the outbox of weir.ledger.v1.
func Facts() outbox.Outbox { return outbox.Outbox{Topic: contract.TopicLedger, Source: source} }
