package bus

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
)

// A Consumer groups the errors of records.
type Consumer struct {
	Errors *groups.Errors
	Count  func(postgres.Effect) // counts the effects of transactions, repeated ones too; may be nil
}

// Consume groups the errors of complete requests in the transaction that
// moves their positions. It skips records without errors, duplicates,
// replays and those of deleted projects. An unreadable record that
// completes its request is parked by the bus. Any other error rolls back.
func (c Consumer) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	received, err := inbox.Receive(ctx, tx, records, want)
	if err != nil {
		return err
	}
	learned, err := c.Errors.Learned(ctx, tx, projectsOf(received.Logs))
	if err != nil {
		return err
	}
	paths, err := postgres.FindSettings(ctx, tx, projectsOf(received.Logs))
	if err != nil {
		return err
	}
	tally := grouping.NewTally()
	add, mapped := func(o grouping.Occurrence) { tally.Add(o) }, []grouping.Occurrence(nil)
	if anyMaps(learned) { // all wait for their calls, as errors are counted in the order of the log
		add = func(o grouping.Occurrence) { mapped = append(mapped, o) }
	}
	err = received.Each(ctx, tx, func(source bus.Record, logs contract.LogsAccepted) error {
		of := learned[projectOf(logs)]
		if of.Rules, err = c.Errors.Rules.At(ctx, tx, projectOf(logs), of, logs.Time); err != nil {
			return err
		}
		return bus.PermanentRecord(source, count(add, logs, of, paths.Of(projectOf(logs), logs.Time)))
	})
	if err != nil {
		return err
	}
	if err := c.Errors.Map(ctx, tx, mapped); err != nil {
		return err
	}
	for _, o := range mapped {
		tally.Add(o)
	}
	effect, err := c.Errors.Count(ctx, tx, tally)
	if err != nil {
		return err
	}
	if c.Count != nil {
		c.Count(effect)
	}
	if err := saveEvents(ctx, tx, effect.Created); err != nil {
		return err
	}
	return Announce(ctx, tx, effect.Decided)
}

// want chooses records with errors, parts of larger requests, whose other
// parts may have errors, and records with an idempotency key: the first of
// a key counts even without an error. Only lines of records with errors are parsed.
func want(logs *contract.LogsAccepted) bool {
	if logs.Errors == 0 {
		logs.Lines = nil
	}
	return logs.Errors > 0 || logs.Parts > 1 || logs.Idempotency != ""
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

// anyMaps reports whether a project has source maps.
func anyMaps(learned map[postgres.Project]grouping.Learned) bool {
	for _, l := range learned {
		if l.Maps {
			return true
		}
	}
	return false
}

// count adds the errors of one part.
func count(add func(grouping.Occurrence), logs contract.LogsAccepted, learned grouping.Learned, set grouping.Paths) error {
	if logs.Errors == 0 {
		return nil
	}
	var s scanner
	paths, expires := pathsOf(set), grouping.Expiry(logs.Time, logs.Retention())
	return logs.Split(func(index int, text []byte) error {
		if !mayCarryError(text) {
			return nil
		}
		o, found, err := s.occurrence(string(text), paths, logs, learned)
		if err != nil {
			return fmt.Errorf("cannot read entry %d of %s: %w", index, logs.ID(), err)
		}
		if found {
			o.Entry, o.Expires = contract.EntryID(logs.Batch, index), expires
			add(o)
		}
		return nil
	})
}

// ReadEntry reads the error of an entry that was accepted before, as Consume did then;
// found is false where it carries none.
func ReadEntry(organization string, of groups.Entry, learned grouping.Learned, set grouping.Paths) (o grouping.Occurrence, found bool, err error) {
	var s scanner
	logs := contract.LogsAccepted{Organization: organization, Project: of.Project, Environment: of.Environment, Time: of.ReceivedAt}
	o, found, err = s.occurrence(string(of.Text), pathsOf(set), logs, learned)
	o.Entry = of.ID
	return o, found, err
}

// occurrence reads the error of an entry; found is false where it carries none.
func (s *scanner) occurrence(text string, paths []path, logs contract.LogsAccepted, learned grouping.Learned) (o grouping.Occurrence, found bool, err error) {
	e, err := s.entry(text, paths)
	if err != nil || !e.hasError {
		return o, false, err
	}
	o = occurrence(e, logs)
	o.Error.Learned, o.Error.Context = learned, contextOf(e, o, learned)
	return o, true, nil
}

func occurrence(e entry, logs contract.LogsAccepted) grouping.Occurrence {
	at, ahead := eventTime(e.timestamp, logs.Time)
	o := grouping.Occurrence{
		Organization: logs.Organization, Project: logs.Project, Accepted: logs.Time,
		At: at, Ahead: ahead, Environment: e.environment, Message: e.message, Error: e.err,
		Release: e.metadata.value(ofRelease), Service: e.metadata.value(ofService), Host: e.metadata.value(ofHost), User: e.metadata.value(ofUser),
		DebugIDs: e.debugIDs,
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
// of acceptance: else the group would head all lists until then. ahead
// is that of the future, in microseconds since 1970; 0: it is none.
func eventTime(text string, accepted time.Time) (at time.Time, ahead int64) {
	at, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		at = accepted
	case at.After(accepted):
		at, ahead = accepted, at.UnixMicro()
	}
	return time.UnixMicro(at.UnixMicro()).UTC(), ahead
}

// Lanes defers organizations that send more than their share: each
// is a lane. A record costs the bytes of its entries, if they are
// parsed because one has an error, and errorCost for each error.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization, Cost: cost, MaxCost: maxCost} }

// maxCost bounds one transaction: 8 MiB of ordinary records
// with errors in a tenth of the entries, and 4,000 new kinds.
const maxCost = 16 << 20

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// unparsedCost is the cost of an unparsed record.
const unparsedCost = 512

// errorCost is the cost of an error beside its text: to store a new
// kind of 100 bytes takes as long as to parse thousands. Without it one
// transaction could create all groups that an organization may have.
const errorCost = 4 << 10

func cost(record bus.Record) int {
	errors, err := strconv.Atoi(record.Header(contract.HeaderErrors))
	if err == nil && errors <= 0 {
		return unparsedCost
	}
	return unparsedCost + len(record.Value) + errorCost*min(max(errors, 0), len(record.Value)/minErrorSize)
}

// minErrorSize is fewer bytes than any entry with an
// error has: a header may claim no more errors than fit.
const minErrorSize = 32

// RelayName names the relay's cursor in the outbox. It is
// stored: another name would publish everything again.
const RelayName = "grouping.facts"

// Outbox is the outbox of weir.grouping.v1.
func Outbox() outbox.Outbox {
	return outbox.Outbox{Topic: contract.TopicGrouping, Source: "weir/grouping"}
}
