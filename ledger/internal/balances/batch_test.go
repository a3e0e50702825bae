package balances_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/watermark"
	"github.com/weirlog/weir/shared/contract"
)

// batchAt returns the id of a batch accepted at an instant.
func batchAt(at time.Time) uuid.UUID {
	batch := uuid.Must(uuid.NewV7())
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(at.UnixMilli())) //nolint:gosec // since 1970
	copy(batch[:6], millis[2:])
	return batch
}

// A batch is reported once it is charged, even while another partition lags.
func TestABatchWaitsForNoOtherPartition(t *testing.T) {
	l, asked := ledgertest.Acme(t), make(chan struct{})
	batch := batchAt(l.Now())
	l.Balances.Waiter.End = func(context.Context) (watermark.End, error) {
		close(asked)
		return watermark.End{Next: contract.Positions{0: 1, 3: 1000}}, nil
	}
	l.SetPosition(t, 0, 0, [16]byte{1}, "")
	l.SetPosition(t, 3, 0, [16]byte{1}, "")
	go func() {
		<-asked // it is not charged yet, and waits
		charge := l.NewCharge("acme", 1)
		charge.Cause.Event = batch.String() + "/1"
		l.Book(t, charge)
		l.SetPosition(t, 0, 1, [16]byte{1}, "")
		l.Pass(time.Second)
	}()
	charged, err := l.Balances.Waiter.Await(t.Context(), "acme", balances.Awaited{Batch: batch})
	if err != nil || !*charged {
		t.Errorf("charged %v: %v", charged, err)
	}
}
