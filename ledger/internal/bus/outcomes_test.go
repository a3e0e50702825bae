package bus_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/bus"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// outcome is a record of weir.outcomes.v1.
func outcome(t *testing.T, kind string, fact any, offset int64) sharedbus.Record {
	t.Helper()
	value, err := json.Marshal(fact)
	if err != nil {
		t.Fatal(err)
	}
	r := record(map[string]string{contract.HeaderType: kind, contract.HeaderID: "e"}, 0, offset)
	r.Topic, r.Value = contract.TopicOutcomes, value
	return r
}

// tally is a record of one process about acme with so many rejected requests.
func tally(process string, sequence, rejected int64) contract.RequestsCounted {
	at := time.Now().UTC()
	return contract.RequestsCounted{Organization: "acme", Process: process, Sequence: sequence, From: at, To: at, Counts: []contract.RequestCount{
		{Project: "prj", APIKey: "key", Environment: "prod", Outcome: contract.OutcomeRejected, Reason: "empty_batch", Requests: rejected, Bytes: 11 * rejected},
		{Project: "prj", APIKey: "key", Environment: "prod", Outcome: contract.OutcomeAccepted, Requests: 9, Entries: 9, Bytes: 900, KeyInBody: 1},
	}}
}

func consume(t *testing.T, consumer *bus.Consumer, pool *pgxpool.Pool, records ...sharedbus.Record) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Outcomes(t.Context(), tx, records) })
}

// Each tally counts once, in one transaction or several, whatever else
// counts. It doesn't count accepted requests. Other facts are ignored.
func TestTalliesCountOnce(t *testing.T) {
	consumer, pool := newConsumer(t)
	counted := func(fact contract.RequestsCounted, offset int64) sharedbus.Record {
		return outcome(t, contract.TypeRequestsCounted, fact, offset)
	}
	for _, records := range [][]sharedbus.Record{
		{counted(tally("one", 1, 5), 0), counted(tally("one", 1, 5), 1), counted(tally("two", 1, 7), 2), outcome(t, "weir.outcomes.v1.sung", "la", 3)},
		{counted(tally("one", 1, 5), 4), counted(tally("one", 2, 3), 5), counted(tally("two", 1, 7), 6)},
	} {
		if err := consume(t, consumer, pool, records...); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"usage_hours", "usage_days"} {
		var rejected, accepted, inBody int64
		err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := pg.AsSystem(t.Context(), tx); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `SELECT sum(requests) FILTER (WHERE outcome = 'rejected'), sum(requests + entries + bytes) FILTER (WHERE outcome = 'accepted'),
				sum(key_in_body) FROM `+table).Scan(&rejected, &accepted, &inBody)
		})
		if err != nil || rejected != 15 || accepted != 0 || inBody != 3 {
			t.Errorf("%s: %d rejected, %d accepted, %d with the key in the body, %v", table, rejected, accepted, inBody, err)
		}
	}
}

// An impossible outcome is a permanent error of its record, so that it
// is parked and blocks none.
func TestOutcomesThatCannotBeTrue(t *testing.T) {
	consumer, pool := newConsumer(t)
	negative := tally("one", 1, -5)
	refused := contract.QuotaRefused{Organization: "acme", RequestID: "req", At: time.Now(), Bytes: -1, Requests: 1}
	garbage := outcome(t, contract.TypeQuotaRefused, "", 2)
	garbage.Value = []byte("{")
	for _, bad := range []sharedbus.Record{outcome(t, contract.TypeRequestsCounted, negative, 0), outcome(t, contract.TypeQuotaRefused, refused, 1), garbage} {
		var permanent *sharedbus.PermanentError
		if err := consume(t, consumer, pool, outcome(t, contract.TypeRequestsCounted, tally("one", 1, 1), 9), bad); !errors.As(err, &permanent) {
			t.Errorf("offset %d: %v", bad.Offset, err)
		}
	}
}
