package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// A Consumer groups the errors of records.
type Consumer struct {
	Service *groups.Service
	Count   func(postgres.Effect) // counts the effects of transactions, repeated ones too; may be nil
}

// Consume groups the errors of complete requests in the transaction that
// moves their positions. It skips records without errors, duplicates,
// replays and those of deleted projects. An unreadable record that
// completes its request is parked by the bus. Any other error rolls back.
func (c Consumer) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	accepted, sources, err := parseLogs(records)
	if err != nil {
		return err
	}
	deleted, err := erasure.FindDeletedIn(ctx, tx, accepted)
	if err != nil {
		return err
	}
	accepted, sources = deleted.Remaining(accepted, sources)
	judged, err := inbox.Filter(ctx, tx, accepted)
	if err != nil {
		return err
	}
	libraries, err := c.Service.Libraries(ctx, tx, projectsOf(accepted))
	if err != nil {
		return err
	}
	tally, err := tallyFresh(ctx, tx, judged, sources, libraries)
	if err != nil {
		return err
	}
	effect, err := c.Service.Count(ctx, tx, tally)
	if err != nil {
		return err
	}
	if c.Count != nil {
		c.Count(effect)
	}
	return saveEvents(ctx, tx, effect.Created)
}

// tallyFresh counts the errors of requests that their records complete.
func tallyFresh(ctx context.Context, tx pgx.Tx, judged *inbox.Results, sources []bus.Record,
	libraries map[postgres.Project]grouping.Libraries) (*grouping.Tally, error) {
	tally := grouping.NewTally()
	for i, source := range sources {
		if judged.Verdicts[i] != inbox.Fresh {
			continue
		}
		add := func(logs contract.LogsAccepted) error {
			return bus.PermanentRecord(source, count(tally, logs, libraries[projectOf(logs)]))
		}
		if err := judged.Whole(ctx, tx, i, add); err != nil {
			return nil, err
		}
	}
	return tally, nil
}

// parseLogs returns the records for the inbox, and their sources. These are
// records with errors, parts of larger requests, whose other parts may have
// errors, and records with an idempotency key: the first of a key counts
// even without an error. Only lines of records with errors are parsed.
func parseLogs(records []bus.Record) (accepted []contract.LogsAccepted, sources []bus.Record, err error) {
	for _, record := range records {
		logs, err := contract.ParseLogsAccepted(record.Header, record.Value)
		if err != nil {
			return nil, nil, bus.PermanentRecord(record, err)
		}
		if logs.Errors == 0 {
			logs.Lines = nil
		}
		if logs.Errors > 0 || logs.Parts > 1 || logs.Idempotency != "" {
			accepted, sources = append(accepted, logs), append(sources, record)
		}
	}
	return accepted, sources, nil
}

func projectOf(logs contract.LogsAccepted) postgres.Project {
	return postgres.Project{Organization: logs.Organization, Name: logs.Project}
}

// projectsOf are the projects of parts with errors.
func projectsOf(accepted []contract.LogsAccepted) (projects []postgres.Project) {
	for _, logs := range accepted {
		if logs.Errors > 0 {
			projects = append(projects, projectOf(logs))
		}
	}
	return projects
}

// count adds the errors of one part.
func count(tally *grouping.Tally, logs contract.LogsAccepted, libraries grouping.Libraries) error {
	if logs.Errors == 0 {
		return nil
	}
	return logs.Split(func(index int, text []byte) error {
		if !mayCarryError(text) {
			return nil
		}
		e, err := parseEntry(string(text))
		if err != nil {
			return fmt.Errorf("cannot read entry %d of %s: %w", index, logs.ID(), err)
		}
		if e.hasError {
			o := occurrence(e, logs, index)
			o.Error.Libraries = libraries
			tally.Add(o)
		}
		return nil
	})
}

func occurrence(e entry, logs contract.LogsAccepted, index int) grouping.Occurrence {
	o := grouping.Occurrence{
		Organization: logs.Organization, Project: logs.Project, Entry: contract.EntryID(logs.Batch, index), Accepted: logs.Time,
		Expires: grouping.Expiry(logs.Time, logs.Retention()),
		At:      eventTime(e.timestamp, logs.Time), Environment: e.environment, Message: e.message, Error: e.err,
	}
	if o.Environment == "" {
		o.Environment = logs.Environment
	}
	if o.Error.Message == "" && o.Error.Type == "" {
		o.Error.Message = e.message // the payload has none
	}
	var ok bool
	if o.Severity, ok = grouping.ParseSeverity(e.level); !ok {
		o.Severity = grouping.SeverityError
	}
	return o
}

// eventTime is the entry's time, from the year 0000 on, in microseconds,
// as stored. If it is unreadable or in the future, it becomes the time
// of acceptance: else the group would head all lists until then.
func eventTime(text string, accepted time.Time) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.After(accepted) {
		at = accepted
	}
	return time.UnixMicro(at.UnixMicro()).UTC()
}
