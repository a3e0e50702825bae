package bus_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// partsOf is a request of three parts of 10, 20 and 30 bytes, from an offset on.
func partsOf(t *testing.T, offset int64) (records []sharedbus.Record) {
	t.Helper()
	batch := uuid.Must(uuid.NewV7()).String()
	for part := range 3 {
		logs, err := contract.ParseLogsAccepted(accepted("acme", 0, 0).Header, nil)
		if err != nil {
			t.Fatal(err)
		}
		logs.Batch, logs.Part, logs.Parts, logs.Entries, logs.Bytes = batch, part+1, 3, 1, int64(10*(part+1))
		records = append(records, record(logs.Headers(), 0, offset+int64(part)))
	}
	return records
}

// A request of several parts is charged once, when all have come; a
// partial one never. The ranges still match the log.
func TestRequestsAreChargedWhole(t *testing.T) {
	consumer, pool := newConsumer(t)
	half, whole := partsOf(t, 0), partsOf(t, 2)
	for _, step := range []struct {
		records       []sharedbus.Record
		bytes, counts int64 // charged so far, and entries of them
	}{{half[:2], 0, 0}, {whole[:2], 0, 0}, {whole[2:], 60, 3}} {
		var bytes, entries int64
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if err := consumer.Logs(t.Context(), tx, step.records); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `SELECT coalesce(sum(bytes), 0), coalesce(sum(entries), 0) FROM usage_days`).Scan(&bytes, &entries)
		})
		if err != nil || bytes != step.bytes || entries != step.counts {
			t.Errorf("%d bytes of %d entries are charged, want %d of %d; error %v", bytes, entries, step.bytes, step.counts, err)
		}
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		violations, err := postgres.Verify(t.Context(), tx, ledger.DefaultRetention(), time.Now())
		if len(violations) > 0 {
			t.Errorf("the books are unsound: %+v", violations)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Fillers stand at offsets whose records are lost: the ranges cover them,
// wherever they lie in a transaction, and nothing is charged for them.
func TestFillersAreAccountedFor(t *testing.T) {
	consumer, pool := newConsumer(t)
	filler := func(from, to int64) (records []sharedbus.Record) {
		for offset := from; offset < to; offset++ {
			records = append(records, sharedbus.Record{Topic: contract.TopicLogs, Offset: offset})
		}
		return records
	}
	one := func(offset int64) []sharedbus.Record { return []sharedbus.Record{accepted("acme", 0, offset)} }
	for _, records := range [][]sharedbus.Record{
		slices.Concat(one(0), filler(1, 4)), filler(4, 7), filler(7, 9), slices.Concat(filler(9, 10), one(10)), slices.Concat(one(11), filler(12, 14), one(14)),
	} {
		if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(t.Context(), tx, records) }); err != nil {
			t.Fatal(err)
		}
	}
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		var next, bytes int64
		if err := tx.QueryRow(t.Context(), `SELECT max(next_offset), sum(bytes) FROM ranges`).Scan(&next, &bytes); err != nil || next != 15 || bytes != 4*20000 {
			t.Errorf("ranges up to %d with %d bytes, %v", next, bytes, err)
		}
		violations, err := postgres.Verify(t.Context(), tx, ledger.DefaultRetention(), time.Now())
		if len(violations) > 0 {
			t.Errorf("the books are unsound: %+v", violations)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A record with an applied batch and part but other content is no
// duplicate: it is parked and counted.
func TestAContradictionIsNoDuplicate(t *testing.T) {
	consumer, pool := newConsumer(t)
	first := accepted("acme", 0, 0)
	apply := func(records ...sharedbus.Record) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(t.Context(), tx, records) })
	}
	again, other := first, first
	again.Offset, other.Offset = 1, 2
	other.Headers = slices.Clone(first.Headers)
	for i, header := range other.Headers {
		if header.Key == contract.HeaderBytes {
			other.Headers[i].Value = []byte("20001")
		}
	}
	if err := apply(first, again); err != nil {
		t.Fatal(err)
	}
	err := apply(other)
	var blame *sharedbus.PermanentError
	if !errors.Is(err, bus.ErrConflict) || !errors.As(err, &blame) || !blame.Record || blame.Offset != 2 {
		t.Errorf("error %v", err)
	}
	if n := testutil.ToFloat64(consumer.Conflicts); n != 1 {
		t.Errorf("%v conflicts are counted", n)
	}
}
