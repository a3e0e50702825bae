package soak

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
)

// misfits are what a failing producer leaves: an unreadable record, which
// is parked, and the first part of a request whose second never comes.
func (t *tenant) misfits(now time.Time) []*message.Message {
	unreadable, incomplete := messageOf(t.record(now, 1)), messageOf(t.record(now, 2))
	unreadable.Metadata[contract.HeaderBytes] = "many"
	return []*message.Message{unreadable, incomplete}
}

// record is the first of so many parts of a request.
func (t *tenant) record(now time.Time, parts int) contract.LogsAccepted {
	line := routine(now, t.number, 1)
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: parts, Organization: t.organization, Project: t.project, Environment: "prod", Key: t.key.ID,
		Source: "weir/ingest", Time: now, Entries: 1, Bytes: int64(len(line)), Lines: []byte(line + "\n"),
	}
}

func messageOf(logs contract.LogsAccepted) *message.Message {
	m := message.NewMessage(logs.ID(), logs.Lines)
	m.Metadata = logs.Headers()
	m.Metadata[bus.KeyMetadata] = logs.RecordKey(1)
	return m
}

// publishMisfits publishes a tenant's misfits.
func (r *run) publishMisfits(ctx context.Context, t *tenant) (err error) {
	out, err := publisher.New(publisher.Config{Brokers: []string{r.broker.Addr()}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	misfits := t.misfits(r.clock.Now())
	r.accepted += int64(len(misfits))
	_, err = out.PublishContext(ctx, contract.TopicLogs, misfits...)
	return err
}
