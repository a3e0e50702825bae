package notifications

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/webhook"
	"github.com/weirlog/weir/tenants"
)

// Facts makes deliveries of what other modules publish.
type Facts struct {
	Clock func() time.Time
	Mail  bool // is sent from here
}

// A fact is what is sent of an event.
type fact struct {
	contract.Attributes
	name    string
	project string // empty: it is of none
	body    []byte
}

var errNotOurs = errors.New("it names no organization, or another than its header")

// Consume adds a delivery for each webhook that wants a fact, in the transaction that moves the positions. A record that can't be read is
// parked by the bus; events that nobody can have sent are passed over.
func (f Facts) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	facts, err := readFacts(records)
	if err != nil || len(facts) == 0 {
		return err
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	gone, err := erasure.Among(ctx, tx, organizationsOf(facts))
	if err != nil {
		return err
	}
	now := f.Clock().UTC()
	var batch pgx.Batch
	for _, fact := range facts {
		if !gone.Has(fact.Organization, fact.project) {
			batch.Queue(addFact, fact.Organization, fact.ID, fact.project, fact.name, string(fact.body), now, fact.Time, failureOff)
			if f.Mail && mailTextOf(fact.name) != nil && now.Sub(fact.Time) < mailedWithin {
				batch.Queue(addMails, fact.Organization, fact.ID, fact.project, fact.name, string(fact.body), now)
			}
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

func organizationsOf(facts []fact) (ids []string) {
	for _, fact := range facts {
		ids = append(ids, fact.Organization)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func readFacts(records []bus.Record) (facts []fact, err error) {
	for _, record := range records {
		pushed, found := contract.PushedAs(record.Header(contract.HeaderType))
		if !found {
			continue
		}
		read, err := readFact(record, pushed.Name)
		if err != nil {
			return nil, bus.PermanentRecord(record, fmt.Errorf("cannot read a %s: %w", pushed.Type, err))
		}
		facts = append(facts, read)
	}
	return facts, nil
}

func readFact(record bus.Record, name string) (read fact, err error) {
	if read.Attributes, err = contract.ParseAttributes(record.Header); err != nil {
		return read, err
	}
	var of struct{ Organization, Project string }
	if err := json.Unmarshal(record.Value, &of); err != nil {
		return read, err
	}
	if read.Organization != of.Organization || !tenants.IsID(of.Organization) {
		return read, errNotOurs
	}
	read.name, read.project = name, of.Project
	read.body, err = json.Marshal(webhook.Payload{Type: name, Timestamp: read.Time, Data: json.RawMessage(record.Value)})
	return read, err
}
