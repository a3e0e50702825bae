package bus_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
)

// traffic publishes messages one by one from several goroutines until
// it is stopped, and keeps the outcome of each.
type traffic struct {
	mu       sync.Mutex
	written  map[string]bool
	unknown  map[string]bool
	refused  map[string]bool
	lanes    int // how many organizations the senders belong to; 0: none
	stopping chan struct{}
	wg       sync.WaitGroup
}

func startTraffic(p *publisher.Publisher, topic string, senders int, pace time.Duration) *traffic {
	return startTrafficOf(p, topic, senders, 0, pace)
}

// startTrafficOf is startTraffic with senders of so many organizations.
func startTrafficOf(p *publisher.Publisher, topic string, senders, lanes int, pace time.Duration) *traffic {
	tr := &traffic{written: map[string]bool{}, unknown: map[string]bool{}, refused: map[string]bool{}, lanes: lanes, stopping: make(chan struct{})}
	for s := range senders {
		tr.wg.Go(func() { tr.send(p, topic, s, pace) })
	}
	return tr
}

func (tr *traffic) send(p *publisher.Publisher, topic string, sender int, pace time.Duration) {
	for i := 0; ; i++ {
		select {
		case <-tr.stopping:
			return
		case <-time.After(pace):
		}
		m := message.NewMessage(fmt.Sprintf("%d-%d", sender, i), []byte("payload"))
		m.Metadata[bus.KeyMetadata] = fmt.Sprint(sender)
		if tr.lanes > 0 {
			m.Metadata["ce_organization"] = fmt.Sprint("lane-", sender%tr.lanes)
		}
		tr.note(m.UUID, p.Publish(topic, m))
	}
}

func (tr *traffic) note(id string, err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch {
	case err == nil:
		tr.written[id] = true
	case errors.Is(err, bus.ErrUnknownOutcome):
		tr.unknown[id] = true
	default:
		tr.refused[id] = true
	}
}

func (tr *traffic) stop() {
	close(tr.stopping)
	tr.wg.Wait()
}

func (tr *traffic) confirmed() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.written)
}

// audit compares reported outcomes with the log: how many messages reported
// as written are lost, and how many are in the log more than once.
func (tr *traffic) audit(t testing.TB, log []bus.Record) (lost, repeated int) {
	t.Helper()
	found := make(map[string]int)
	last := make(map[string]int) // sender and partition -> newest index seen
	for _, r := range log {
		id := r.Header("ce_id")
		if found[id]++; found[id] > 1 {
			repeated++
			continue
		}
		var sender, index int
		fmt.Sscanf(id, "%d-%d", &sender, &index)
		place := fmt.Sprint(sender, "/", r.Partition)
		if before, ok := last[place]; ok && index < before {
			t.Errorf("%s lies behind %d of the same key", id, before)
		}
		last[place] = index
	}
	for id := range tr.written {
		if found[id] == 0 {
			t.Errorf("%s was reported written and is lost", id)
			lost++
		}
	}
	for id := range tr.refused {
		if found[id] > 0 {
			t.Errorf("%s was reported not written and is there", id)
		}
	}
	t.Logf("%d written, %d unknown, %d not written, %d more than once", len(tr.written), len(tr.unknown), len(tr.refused), repeated)
	return lost, repeated
}

// more waits until n more messages are reported as written.
func (tr *traffic) more(t testing.TB, n int) {
	t.Helper()
	goal := tr.confirmed() + n
	testenv.Eventually(t, 4*bustest.Timeout, func() error {
		if got := tr.confirmed(); got < goal {
			return fmt.Errorf("%d messages written, want %d", got, goal)
		}
		return nil
	})
}
