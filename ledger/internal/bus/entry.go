package bus

import (
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// An entry is what is booked of a record of weir.logs.v1: its headers say all.
type entry struct {
	logs   contract.LogsAccepted
	charge ledger.Charge // of the record alone
}

// parseLogs reads records; one with impossible headers is blamed.
func parseLogs(records []bus.Record) ([]entry, error) {
	entries := make([]entry, len(records))
	for i, record := range records {
		var err error
		if entries[i], err = parseEntry(record); err != nil {
			return nil, bus.PermanentRecord(record, err)
		}
	}
	return entries, nil
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

// place is that of the record.
func (e entry) place() bus.Position {
	return bus.Position{Partition: e.charge.Cause.Partition, Offset: e.charge.Cause.Offset}
}

func placeOf(record bus.Record) bus.Position {
	return bus.Position{Partition: record.Partition, Offset: record.Offset}
}
