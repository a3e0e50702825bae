package bus

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// A LogStore keeps what weir.logs.v1 says was accepted: each entry once, under its organization and project.
type LogStore struct {
	Store *postgres.Store
	NewID func() string // makes the UUIDs of blocks
}

// Lanes keep organizations from waiting for each other.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization} }

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// Consume keeps the entries of fresh records as blocks, in the transaction that moves the positions. A record whose
// lines are not what its headers say is named as permanent, and parked by the bus.
func (l *LogStore) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	accepted, err := parse(records)
	if err != nil {
		return err
	}
	verdicts, err := inbox.Filter(ctx, tx, accepted)
	if err != nil {
		return err
	}
	gathered := newGathering(l.NewID)
	for i, logs := range accepted {
		if verdicts[i] != inbox.Fresh {
			continue
		}
		if err := gathered.add(logs); err != nil {
			return bus.PermanentRecord(records[i], err)
		}
	}
	return l.Store.Keep(ctx, tx, gathered.finish())
}

func parse(records []bus.Record) ([]contract.LogsAccepted, error) {
	accepted := make([]contract.LogsAccepted, len(records))
	for i, record := range records {
		logs, err := contract.ParseLogsAccepted(record.Header, record.Value)
		if err != nil {
			return nil, bus.PermanentRecord(record, err)
		}
		accepted[i] = logs
	}
	return accepted, nil
}

// A gathering merges the entries of many records into few blocks: one run of blocks for each project, retention, day and span.
type gathering struct {
	newID  func() string
	parser *ingest.Parser
	open   map[owner]*ingest.Builder
	order  []owner
	blocks []postgres.Block
}

// owner is whose entries a block holds, how long they are kept, on which day they were received, and in which span their times lie.
type owner struct {
	organization, project string
	retention             int
	day                   int64
	span                  ingest.Span
}

func newGathering(newID func() string) *gathering {
	return &gathering{newID: newID, parser: ingest.NewParser(ingest.DefaultLimits()), open: map[owner]*ingest.Builder{}}
}

func (g *gathering) add(logs contract.LogsAccepted) error {
	batch, err := batchID(logs.Batch)
	if err != nil {
		return err
	}
	who := owner{organization: logs.Organization, project: logs.Project, retention: logs.Retention(), day: logs.Time.Unix() / int64(24*time.Hour/time.Second)}
	var builder *ingest.Builder // of who; nil: it has to be looked up
	return logs.Split(func(index int, text []byte) error {
		read, err := g.parser.ReadEntry(text)
		if err != nil {
			return fmt.Errorf("entry %d of %s: %w", index, logs.ID(), err)
		}
		if span := ingest.SpanOf(read.Time, logs.Time); builder == nil || span != who.span {
			who.span = span
			builder = g.builder(who)
		}
		builder.Add(ingest.Stored{
			Place:       ingest.Place{Time: read.Time, Batch: batch, Index: index},
			ReceivedAt:  logs.Time,
			Level:       read.Level,
			Environment: environment(read, logs),
			Text:        text,
		}, read.Message)
		if builder.Full() {
			g.build(who)
		}
		return nil
	})
}

// environment is the one that the entry names, or else that of the key it came with.
func environment(entry ingest.Entry, logs contract.LogsAccepted) string {
	if len(entry.Environment) > 0 {
		return string(entry.Environment)
	}
	return logs.Environment
}

func (g *gathering) builder(who owner) *ingest.Builder {
	if g.open[who] == nil {
		g.open[who] = &ingest.Builder{}
		g.order = append(g.order, who)
	}
	return g.open[who]
}

func (g *gathering) build(who owner) {
	block := postgres.Block{Block: g.open[who].Build(), ID: g.newID(), Organization: who.organization, Project: who.project, Retention: who.retention}
	g.blocks = append(g.blocks, block)
}

// finish returns all blocks, in the order in which their projects came.
func (g *gathering) finish() []postgres.Block {
	for _, who := range g.order {
		if g.open[who].Len() > 0 {
			g.build(who)
		}
	}
	return g.blocks
}

// batchID reads a UUID in its canonical form.
func batchID(text string) (id [16]byte, err error) {
	n, err := hex.Decode(id[:], []byte(strings.ReplaceAll(text, "-", "")))
	if err == nil && n != len(id) {
		err = errors.New("it is too short")
	}
	if err != nil {
		return id, fmt.Errorf("cannot read batch id %q: %w", text, err)
	}
	return id, nil
}
