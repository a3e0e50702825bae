package notifications

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/prune"
)

// DeliveriesForTest keeps fewer deliveries of a
// webhook than Tables does, and removes fewer at once.
func DeliveriesForTest(clock func() time.Time, perWebhook, batchSize int) prune.Table {
	return oldDeliveries{prune.Rows{Table: "deliveries", Age: "created_at", Before: prune.Ago(kept, clock)}, perWebhook, batchSize}
}

// ClaimForTest claims due deliveries and does
// nothing, like a process that is killed then.
func (s *Sender) ClaimForTest(ctx context.Context) (int, error) {
	claimed, err := s.claim(ctx)
	return len(claimed), err
}

// BeginForTest marks deliveries of an organization as under way.
func (s *Sender) BeginForTest(organization string, n int) {
	for range n {
		s.begin([]due{{Delivery: Delivery{Organization: organization}}})
	}
}

// MeasureForTest measures the tables once.
func (s *Sender) MeasureForTest(ctx context.Context) error { return s.measure(ctx) }

// ClaimQueryForTest is the query for due deliveries.
func ClaimQueryForTest() string { return claim }
