package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// newFact is a fact as the outbox keeps it.
func newFact(fact ledger.Fact) outbox.Fact {
	kind, body := factBody(fact)
	return outbox.Fact{Organization: fact.Organization, ID: fact.ID(), Type: kind, At: fact.Cause.At, Body: body}
}

// factBody is a fact as weir.ledger.v1 carries it.
func factBody(fact ledger.Fact) (kind string, body []byte) {
	var value any
	switch fact.Kind {
	case ledger.ThresholdReached:
		kind, value = contract.TypeThresholdReached, contract.ThresholdReached{
			Organization: fact.Organization, PeriodStart: fact.Book.Period.Start, Percent: fact.Percent,
			Quota: fact.Book.Granted(), Used: fact.Book.Used(), Batch: fact.Cause.Batch, At: fact.Cause.At,
		}
	case ledger.QuotaExhausted:
		kind, value = contract.TypeQuotaExhausted, contract.QuotaExhausted{
			Organization: fact.Organization, PeriodStart: fact.Book.Period.Start, PeriodEnd: fact.Book.Period.End,
			Quota: fact.Book.Granted(), Used: fact.Book.Used(), At: fact.Cause.At,
		}
	default:
		panic(fmt.Sprintf("BUG: no event for a fact of kind %d", fact.Kind))
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic("BUG: cannot encode a fact: " + err.Error())
	}
	return kind, body
}
