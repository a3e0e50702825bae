package bus

import (
	"slices"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// An entry is the bookable part of a record of weir.logs.v1. Its
// headers hold all of it.
type entry struct {
	logs   contract.LogsAccepted
	charge ledger.Charge // of the record alone
}

// entries are several, by what each step of booking needs.
type entries struct {
	logs  []contract.LogsAccepted
	parts []ledger.Charge // of each record alone
}

func (e *entries) add(one entry) {
	e.logs, e.parts = append(e.logs, one.logs), append(e.parts, one.charge)
}

// drop removes the entry of a record.
func (e *entries) drop(of bus.Position) {
	at := slices.IndexFunc(e.parts, func(part ledger.Charge) bool {
		return part.Cause.Partition == of.Partition && part.Cause.Offset == of.Offset
	})
	if at >= 0 {
		e.logs, e.parts = slices.Delete(e.logs, at, at+1), slices.Delete(e.parts, at, at+1)
	}
}

// parseLogs parses records. An invalid header is that record's permanent error.
func parseLogs(records []bus.Record) (entries, error) {
	all := entries{make([]contract.LogsAccepted, 0, len(records)), make([]ledger.Charge, 0, len(records))}
	for _, record := range records {
		one, err := parseEntry(record)
		if err != nil {
			return entries{}, bus.PermanentRecord(record, err)
		}
		all.add(one)
	}
	return all, nil
}

func parseEntry(record bus.Record) (entry, error) {
	logs, err := contract.ParseLogsAccepted(record.Lookup(), nil)
	if err != nil {
		return entry{}, err
	}
	e := entry{logs, chargeOf(logs, record)}
	return e, e.charge.Validate()
}

func chargeOf(logs contract.LogsAccepted, record bus.Record) ledger.Charge {
	return ledger.Charge{
		Organization: logs.Organization,
		Bytes:        logs.Bytes,
		Entries:      logs.Entries,
		Errors:       logs.Errors,
		Environment:  logs.Environment,
		Cause: ledger.Cause{
			Event: logs.ID(), Batch: logs.Batch, Source: ledger.FromLogs,
			Partition: record.Partition, Offset: record.Offset,
			At: logs.Time.Truncate(time.Microsecond), Project: logs.Project, Key: logs.Key,
		},
	}
}
