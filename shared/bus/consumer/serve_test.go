package consumer

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/deferred"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/status"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/testenv"
)

// behind returns an assignment in which lane "a" has backlogs in the
// given partitions, the oldest in the lowest.
func behind(t *testing.T, partitions ...int) (*assignment, context.Context) {
	t.Helper()
	cfg := Config{MaxRecords: 100, MaxBytes: 1 << 20, Lanes: lanes.Config{Of: func(bus.Record) string { return "a" }}.WithDefaults()}
	c := &Consumer{cfg: cfg, logger: slog.New(slog.DiscardHandler), cluster: broker.NewCluster(nil, nil), status: status.New("", "")}
	late := &backlogs{consumer: c, all: lanes.Backlogs{}, turns: lanes.NewTurns()}
	a := &assignment{
		consumer: c, backlogs: late, ahead: newAhead(deferred.NewReader(c.cluster, "", wire.TopicID{}, cfg.Lanes), late), input: follow.NewBuffer(1 << 10),
		claims: map[int]*positions.Position{}, progress: &progress{reach: c.status.Reach, goals: status.NewGoals(), backlogs: late},
	}
	began := clock.Now().Add(-time.Hour)
	for _, p := range partitions {
		a.backlogs.keep(lanes.Backlog{Key: lanes.Key{Lane: "a", Partition: p}, Next: 10, Last: 19, Records: 10, Since: began.Add(time.Duration(p) * time.Second)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		a.ahead.wg.Wait()
	})
	return a, ctx
}

// A partition in which a lane's turn failed pauses, and the lane's
// others get turns; it is not dropped.
func TestAPlaceThatFailsIsPassedOver(t *testing.T) {
	a, _ := behind(t, 0, 1)
	wantNext := func(want int) {
		t.Helper()
		if e, ok := a.backlogs.turns.NextRead(a.backlogs.all, nil, a.consumer.maxBatch()); !ok || e.Partition != want {
			t.Fatalf("partition %d is next (%v), want %d", e.Partition, ok, want)
		}
	}
	wantNext(0)
	a.backlogs.turns.Fail(lanes.Key{Lane: "a", Partition: 0})
	wantNext(1)
	a.backlogs.turns.Fail(lanes.Key{Lane: "a", Partition: 1})
	if e, ok := a.backlogs.turns.NextRead(a.backlogs.all, nil, a.consumer.maxBatch()); ok {
		t.Fatalf("partition %d is next although both have just failed", e.Partition)
	}
	if !a.backlogs.turns.Has("a") || a.backlogs.turns.Rest() > lanes.MaxRest {
		t.Errorf("the lane is forgotten, or rests for %v", a.backlogs.turns.Rest())
	}
	a.backlogs.turns.Succeed(lanes.Key{Lane: "a", Partition: 0})
	wantNext(0)
}

// While all lanes with records have just failed, the Turns rest, and
// then go on.
func TestTurnsRestIfAllLanesFailed(t *testing.T) {
	a, ctx := behind(t, 0)
	a.backlogs.turns.Fail(lanes.Key{Lane: "a", Partition: 0})
	a.ahead.read(ctx, nil)
	s := <-a.ahead.results
	if a.ahead.done(s); s != nil {
		t.Fatalf("read %+v", s)
	}
	for a.backlogs.turns.Pausing(lanes.Key{Lane: "a", Partition: 0}) {
		a.ahead.read(ctx, nil)
		a.ahead.done(<-a.ahead.results)
	}
	a.ahead.read(ctx, nil)
	if s := <-a.ahead.results; s == nil || s.Partition != 0 || s.Err == nil { // there is no broker
		t.Errorf("read %+v", s)
	}
}

// Records read for a turn that now starts elsewhere are read again: the
// turn before failed.
func TestFailedTurnIsReadAgain(t *testing.T) {
	a, ctx := behind(t, 0)
	a.ahead.next = &lanes.Batch{Request: lanes.Request{Key: lanes.Key{Lane: "a", Partition: 0}, Next: 15, Last: 19}, Next: 20}
	if err := a.serve(ctx); err != nil || a.ahead.next != nil || !a.ahead.reading {
		t.Fatalf("error %v, next %v, reading %v", err, a.ahead.next, a.ahead.reading)
	}
	if s := <-a.ahead.results; s.Request.Next != 10 {
		t.Errorf("read again from %d, want 10", s.Request.Next)
	}
}

// A turn waits for late records of the log, but no longer than a
// few turns take.
func TestTurnWaitsForTheLog(t *testing.T) {
	a, ctx := behind(t, 0)
	testenv.Must(t, a.input.Receive(ctx, follow.Chunk{Records: []bus.Record{{Time: clock.Now().Add(-time.Hour)}, {}}}))
	a.input.Ready()
	a.input.Took(1)
	a.ahead.next = &lanes.Batch{Request: lanes.Request{Key: lanes.Key{Lane: "a", Partition: 0}, Next: 10, Last: 19}, Err: errors.New("read in vain")}
	a.ahead.served, a.ahead.took = clock.Now(), time.Hour
	if err := a.serve(ctx); err != nil || a.ahead.next == nil {
		t.Fatalf("the turn did not wait: error %v", err)
	}
	a.ahead.served = clock.Now().Add(-maxWaits * time.Hour)
	if err := a.serve(ctx); err != nil || a.ahead.next != nil {
		t.Errorf("the turn still waits: error %v", err)
	}
}
