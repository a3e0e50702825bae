package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// fate is what became of the bytes of a request.
type fate struct{ published, absent, uncertain int64 }

func fateOf(outcomes []ingest.Outcome) (f fate) {
	for _, part := range outcomes {
		*map[ingest.PartState]*int64{
			ingest.PartPublished: &f.published, ingest.PartAbsent: &f.absent, ingest.PartUncertain: &f.uncertain,
		}[part.State] += part.Bytes
	}
	return f
}

// acceptance is a request of so many parts of 900 KB.
func acceptance(batch, parts int) (accepted ingest.Acceptance, size int64) {
	accepted = ingest.Acceptance{
		Batch: fmt.Sprintf("00000000-0000-7000-8000-%012d", batch), Organization: "org_1", Project: "prj_1", Environment: "prod", Key: "key_1", At: time.Now(),
	}
	for i := range parts {
		lines := append(bytes.Repeat([]byte("x"), 900<<10-1), '\n')
		accepted.Parts = append(accepted.Parts, ingest.Part{First: i, Count: 1, Bytes: int64(len(lines) - 1), Lines: lines})
		size += int64(len(lines) - 1)
	}
	return accepted, size
}

// While all places for large requests are taken, small ones are published at once; a large one waits, and when it gives up all
// of its bytes are absent.
func TestLargeRequestsLeaveTheWayFree(t *testing.T) {
	brokers := testenv.Kafka(t)
	if err := topics.Ensure(t.Context(), brokers, contract.Topics(2, 0)); err != nil {
		t.Fatal(err)
	}
	publisher, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	queue := bus.LargeGroups()
	p := &bus.Publisher{Bus: publisher, Spread: 1, Large: queue}
	var release []func()
	for _, organization := range []string{"org_2", "org_2", "org_3", "org_3"} {
		free, err := queue.Acquire(t.Context(), organization)
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, free)
	}
	small, size := acceptance(1, 1)
	outcomes, err := p.Publish(t.Context(), small)
	if got := fateOf(outcomes); err != nil || got != (fate{published: size}) {
		t.Errorf("a small request: %v, %+v of %d", err, got, size)
	}
	large, size := acceptance(2, 12)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	outcomes, err = p.Publish(ctx, large)
	if got := fateOf(outcomes); err == nil || got != (fate{absent: size}) {
		t.Errorf("a large request that gives up: %v, %+v of %d", err, got, size)
	}
	for _, free := range release {
		free()
	}
	outcomes, err = p.Publish(t.Context(), large)
	if got := fateOf(outcomes); err != nil || got != (fate{published: size}) || queue.Held() != 0 {
		t.Errorf("a large request: %v, %+v of %d; %d places held", err, got, size, queue.Held())
	}
}
