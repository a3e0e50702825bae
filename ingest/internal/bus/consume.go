package bus

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
)

// A LogStore stores the entries of weir.logs.v1, each once,
// under its organization and project.
type LogStore struct {
	Store *postgres.Store
	NewID func() string // makes the UUIDs of blocks; safe for concurrent use
}

// Lanes keep organizations from waiting for each other.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization} }

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// Consume stores the entries of complete requests as blocks, in the
// transaction that moves the positions, except those of deleted
// projects. A record that completes a request whose lines differ from
// its headers is permanent, and parked by the bus.
func (l *LogStore) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	received, err := inbox.Receive(ctx, tx, records, nil)
	if err != nil {
		return err
	}
	kept := &blockWriter{log: l, tx: tx}
	err = received.Each(ctx, tx, func(record bus.Record, logs contract.LogsAccepted) error { return kept.add(ctx, logs, record) })
	if err != nil {
		return err
	}
	return kept.finish(ctx)
}

// portion is how many bytes of lines become blocks together: a large
// request may exceed the memory.
const portion = 32 << 20

// A blockWriter stores fresh records as blocks, portion by portion.
type blockWriter struct {
	log   *LogStore
	tx    pgx.Tx
	fresh []fresh
	size  int
}

func (k *blockWriter) add(ctx context.Context, logs contract.LogsAccepted, record bus.Record) error {
	k.fresh, k.size = append(k.fresh, fresh{logs: logs, record: record}), k.size+len(logs.Lines)
	if k.size < portion {
		return nil
	}
	return k.finish(ctx)
}

func (k *blockWriter) finish(ctx context.Context) error {
	blocks, err := gather(k.fresh, k.log.NewID)
	if err != nil {
		return err
	}
	k.fresh, k.size = nil, 0
	return k.log.Store.Keep(ctx, k.tx, blocks)
}

// A fresh record is one whose entries are to be kept.
type fresh struct {
	logs   contract.LogsAccepted
	record bus.Record
}

// shareBytes is how much text of a project one gathering takes at most: a
// larger project uses several processors. It is two blocks, without a rest.
const shareBytes = 2 * ingest.MaxBlockBytes

// shares divides records among gatherings by project, in order of
// acceptance. Partitions are read at different paces, most of all after
// a pause; in their order blocks would overlap, and a search would read them all.
func shares(records []fresh) (all [][]fresh) {
	byProject := map[string][]fresh{}
	var projects []string
	for _, r := range records {
		if byProject[r.logs.Project] == nil {
			projects = append(projects, r.logs.Project)
		}
		byProject[r.logs.Project] = append(byProject[r.logs.Project], r)
	}
	for _, project := range projects {
		list := byProject[project]
		slices.SortStableFunc(list, func(a, b fresh) int { return a.logs.Time.Compare(b.logs.Time) })
		first, size := 0, 0
		for i, r := range list {
			if size += len(r.logs.Lines); size > shareBytes && i > first {
				all = append(all, list[first:i])
				first, size = i, len(r.logs.Lines)
			}
		}
		all = append(all, list[first:])
	}
	return all
}

// gather makes blocks of the records on all processors. It names one
// of several records that can't be stored.
func gather(records []fresh, newID func() string) ([]postgres.Block, error) {
	all := shares(records)
	blocks := make([][]postgres.Block, len(all))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		workers.Go(func() (err error) {
			blocks[i], err = gatherShare(all[i], newID)
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(blocks...), nil
}

func gatherShare(share []fresh, newID func() string) (blocks []postgres.Block, err error) {
	var record bus.Record
	defer func() { // a panic here would end the process; the bus parks its record
		if v := recover(); v != nil {
			err = bus.PermanentRecord(record, &bus.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	g := newGathering(newID)
	for _, r := range share {
		record = r.record
		if err := g.add(r.logs); err != nil {
			return nil, bus.PermanentRecord(record, err)
		}
	}
	return g.finish(), nil
}

// A gathering merges the entries of many records into few blocks: a run of
// blocks per project, retention, day and span.
type gathering struct {
	newID  func() string
	open   map[owner]*ingest.Builder // bounded by the records of a transaction
	order  []owner
	latest time.Time // when the last record was accepted
	blocks []postgres.Block
}

// An owner identifies the run of a block: its project, retention, day
// of receipt and span of times.
type owner struct {
	organization, project string
	retention             int
	day                   int64
	span                  ingest.Span
}

func newGathering(newID func() string) *gathering {
	return &gathering{newID: newID, open: map[owner]*ingest.Builder{}}
}

func (g *gathering) add(logs contract.LogsAccepted) error {
	g.pause(logs.Time)
	who := owner{organization: logs.Organization, project: logs.Project, retention: logs.Retention(), day: logs.Time.Unix() / int64(24*time.Hour/time.Second)}
	var builder *ingest.Builder // of who; nil: not looked up
	return eachEntry(logs, func(entry ingest.Stored) {
		if span := ingest.SpanOf(entry.Time, logs.Time); builder == nil || span != who.span {
			who.span = span
			builder = g.builder(who)
		}
		builder.Add(entry)
		if builder.Full() {
			g.build(who)
		}
	})
}

// eachEntry reads the entries of a record, which share its memory.
func eachEntry(logs contract.LogsAccepted, each func(ingest.Stored)) error {
	batch, err := batchID(logs.Batch)
	if err != nil {
		return err
	}
	return logs.Split(func(index int, text []byte) error {
		read, err := ingest.ReadBack(text)
		if err != nil {
			return fmt.Errorf("entry %d of %s: %w", index, logs.ID(), err)
		}
		each(ingest.Stored{
			Place:       ingest.Place{Time: read.Time, Batch: batch, Index: index},
			ReceivedAt:  logs.Time,
			Level:       read.Level,
			Environment: environment(read, logs),
			Text:        text,
		})
		return nil
	})
}

// A pause in acceptance ends blocks that are large enough: the next
// record would make them overlap.
const (
	pauseLength    = 10 * time.Second
	minPausedBytes = 4 << 10 // bytes of text
)

func (g *gathering) pause(accepted time.Time) {
	if accepted.Sub(g.latest) > pauseLength {
		for _, who := range g.order {
			if g.open[who].Bytes() >= minPausedBytes {
				g.build(who)
			}
		}
	}
	g.latest = accepted
}

// environment returns the entry's environment, else that of its key.
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
