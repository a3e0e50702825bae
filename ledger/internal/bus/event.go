package bus

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// SaveEvents appends events to the outbox.
func SaveEvents(ctx context.Context, tx pgx.Tx, events []ledger.Event) error {
	facts := make([]outbox.Fact, len(events))
	for i, event := range events {
		facts[i] = outboxFact(event)
	}
	return outbox.Save(ctx, tx, facts)
}

// outboxFact maps an event to the outbox.
func outboxFact(event ledger.Event) outbox.Fact {
	kind, body := eventBody(event)
	return outbox.Fact{Organization: event.Organization, ID: event.ID(), Type: kind, At: event.Cause.At, Body: encode(body)}
}

// eventBody maps an event to weir.ledger.v1.
func eventBody(e ledger.Event) (kind string, body any) {
	book, at := e.Book, e.Cause.At
	start, end, quota, used := book.Period.Start, book.Period.End, book.Allowance(), book.Used()
	switch e.Kind {
	case ledger.ThresholdReached:
		return contract.TypeThresholdReached, contract.ThresholdReached{
			Organization: e.Organization, PeriodStart: start, Percent: e.Percent, Quota: quota, Used: used, Batch: e.Cause.Batch, At: at, Test: e.Test,
		}
	case ledger.QuotaExhausted:
		return contract.TypeQuotaExhausted, contract.QuotaExhausted{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Quota: quota, Used: used, At: at, Test: e.Test,
		}
	case ledger.QuotaRestored:
		return contract.TypeQuotaRestored, contract.QuotaRestored{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Quota: quota, Used: used, At: at, Test: e.Test,
		}
	case ledger.OverageBegun:
		return contract.TypeOverageBegun, contract.OverageBegun{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Quota: quota, Used: used, At: at, Test: e.Test,
		}
	case ledger.TierChanged:
		return contract.TypeTierChanged, contract.TierChanged{Organization: e.Organization, Before: string(e.Before), Tier: string(e.After), At: at, Test: e.Test}
	case ledger.GrantExpiring:
		return contract.TypeGrantExpiring, contract.GrantExpiring{
			Organization: e.Organization, Grant: e.Grant.ID, Remaining: e.Grant.Remaining, ExpiresAt: e.Grant.Expires, At: at, Test: e.Test,
		}
	case ledger.GrantHasExpired:
		return contract.TypeGrantExpired, contract.GrantExpired{Organization: e.Organization, Grant: e.Grant.ID, Expired: e.Grant.Expired, At: at, Test: e.Test}
	case ledger.PeriodClosed:
		balances := book.Balances
		return contract.TypePeriodClosed, contract.PeriodClosed{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Granted: book.Granted(), Consumed: balances[ledger.Consumed],
			Overage: balances[ledger.Overage], Expired: balances[ledger.Expired], Voided: balances[ledger.Voided],
			Overshoot: balances[ledger.Overshoot], At: at, Test: e.Test,
		}
	case ledger.StatementReady:
		return contract.TypeStatementReady, contract.StatementReady{
			Organization: e.Organization, Statement: e.Number, Hash: hex.EncodeToString(e.Hash[:]),
			PeriodStart: start, PeriodEnd: end, Used: used, Overage: book.Balances[ledger.Overage],
			At: at, Test: e.Test,
		}
	case ledger.BooksAdjusted:
		return contract.TypeAdjusted, newAdjusted(e)
	}
	if kind, body := budgetBody(e); kind != "" {
		return kind, body
	}
	panic(fmt.Sprintf("BUG: no contract for an event of kind %d", e.Kind))
}

// budgetBody maps an event about a budget; empty for any other.
func budgetBody(e ledger.Event) (kind string, body any) {
	b, start, end, at := e.Budget, e.Book.Period.Start, e.Book.Period.End, e.Cause.At
	switch e.Kind {
	case ledger.BudgetThresholdReached:
		return contract.TypeBudgetThresholdReached, contract.BudgetThresholdReached{
			Organization: e.Organization, Project: b.Project, APIKey: b.Key, PeriodStart: start, PeriodEnd: end, Percent: e.Percent,
			Budget: b.Bytes, Used: b.Used, Batch: e.Cause.Batch, At: at, Test: e.Test,
		}
	case ledger.BudgetExhausted:
		return contract.TypeBudgetExhausted, contract.BudgetExhausted{
			Organization: e.Organization, Project: b.Project, APIKey: b.Key, PeriodStart: start, PeriodEnd: end, Budget: b.Bytes, Used: b.Used, At: at, Test: e.Test,
		}
	case ledger.BudgetRestored:
		return contract.TypeBudgetRestored, contract.BudgetRestored{
			Organization: e.Organization, Project: b.Project, APIKey: b.Key, PeriodStart: start, PeriodEnd: end, Budget: b.Bytes, Used: b.Used, At: at, Test: e.Test,
		}
	}
	return "", nil
}

func newAdjusted(e ledger.Event) contract.Adjusted {
	adjusted := contract.Adjusted{
		Organization: e.Organization, Adjustment: e.Subject, Bytes: e.Amount, PeriodStart: e.Book.Period.Start, At: e.Cause.At, Test: e.Test,
	}
	if !e.Of.IsZero() {
		adjusted.OfPeriodStart = &e.Of
	}
	return adjusted
}
