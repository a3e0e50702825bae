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
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// acceptance is a request of so many parts of 900 KB.
func acceptance(batch, parts int) (accepted ingest.Acceptance) {
	accepted = ingest.Acceptance{
		Batch: fmt.Sprintf("00000000-0000-7000-8000-%012d", batch), Organization: "org_1", Project: "prj_1", Environment: "prod", Key: "key_1", At: time.Now(),
	}
	for i := range parts {
		lines := append(bytes.Repeat([]byte("x"), 900<<10-1), '\n')
		accepted.Parts = append(accepted.Parts, ingest.Part{First: i, Count: 1, Bytes: int64(len(lines) - 1), Lines: lines})
		accepted.Bytes += int64(len(lines) - 1)
	}
	return accepted
}

// While all places for large requests are taken, small ones are
// published at once. A large one waits; if it gives up it is absent. A
// published one is at its last part.
func TestLargeRequestsLeaveTheWayFree(t *testing.T) {
	brokers := kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(2, 0)))
	publisher, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	defer publisher.Close()
	queue := bus.LargeGroups()
	p := &bus.Publisher{Bus: publisher, Spread: 1, Large: queue}
	var release []func()
	for _, organization := range []string{"org_2", "org_2", "org_3", "org_3"} {
		lease, err := queue.Acquire(t.Context(), organization, 1)
		testenv.Must(t, err)
		release = append(release, lease.Release)
	}
	if outcome, err := p.Publish(t.Context(), acceptance(1, 1)); err != nil || outcome.Status != ingest.Published {
		t.Errorf("a small request: %v, %+v", err, outcome)
	}
	large := acceptance(2, 12)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outcome, err := p.Publish(ctx, large); err == nil || outcome.Status != ingest.Absent {
		t.Errorf("a large request that gives up: %v, %+v", err, outcome)
	}
	for _, free := range release {
		free()
	}
	outcome, err := p.Publish(t.Context(), large)
	if err != nil || outcome.Status != ingest.Published || outcome.Offset < 11 || queue.Held() != 0 {
		t.Errorf("a large request: %v, %+v; %d places held", err, outcome, queue.Held())
	}
}

// A request with an unpublished part is absent, though its first parts
// are in the log.
func TestRequestsThatFailHalfway(t *testing.T) {
	brokers := kafkatest.Brokers(t)
	testenv.Must(t, topics.Ensure(t.Context(), brokers, contract.Topics(1, 0)))
	publisher, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	defer publisher.Close()
	p := &bus.Publisher{Bus: publisher, Spread: 1, Large: bus.LargeGroups()}
	request := acceptance(1, 12)
	request.Parts[11].Lines = bytes.Repeat([]byte("x"), contract.MaxRecordBytes+1) // the broker refuses it
	if outcome, err := p.Publish(t.Context(), request); err == nil || outcome.Status != ingest.Absent {
		t.Errorf("%v, %+v", err, outcome)
	}
	log := bus.Log{Brokers: brokers}
	ends, err := log.Ends(t.Context())
	if err != nil || ends[0] == 0 {
		t.Fatalf("nothing is in the log: %v, %v", ends, err)
	}
	if charges, err := log.Charges(t.Context(), bus.Range{To: ends[0]}); err != nil || len(charges) != 0 {
		t.Errorf("half a request is charged: %v, %v", charges, err)
	}
	again := acceptance(2, 12)
	if outcome, err := p.Publish(t.Context(), again); err != nil || outcome.Status != ingest.Published {
		t.Fatalf("sent again: %v, %+v", err, outcome)
	}
	if ends, err = log.Ends(t.Context()); err != nil {
		t.Fatal(err)
	}
	if charges, err := log.Charges(t.Context(), bus.Range{To: ends[0]}); err != nil || len(charges) != 1 || charges[0].Bytes != again.Bytes {
		t.Errorf("charges %v of %d bytes, %v", charges, again.Bytes, err)
	}
}
