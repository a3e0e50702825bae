package watermillbus

import (
	"context"
	"sync"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

// acknowledgements are the offsets after the last acknowledged message
// of each partition, in the current topic.
type acknowledgements struct {
	mu sync.Mutex
	at places
}

func newAcknowledgements(topic wire.TopicID) *acknowledgements {
	return &acknowledgements{at: places{topic, make(map[int]int64)}}
}

// moveTo drops acknowledgements of another topic.
func (a *acknowledgements) moveTo(topic wire.TopicID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.topic != topic {
		a.at = places{topic, make(map[int]int64)}
	}
}

// note takes an acknowledgement, unless its topic is gone.
func (a *acknowledgements) note(topic wire.TopicID, partition int, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.topic == topic {
		a.at.next[partition] = next
	}
}

// take returns what was noted since the last call.
func (a *acknowledgements) take() places {
	a.mu.Lock()
	defer a.mu.Unlock()
	noted := a.at
	a.at.next = make(map[int]int64)
	return noted
}

// report commits acknowledgements to the group at intervals and once
// more at the end.
func (a *acknowledgements) report(ctx context.Context, s *subscription, generation *kafka.Generation) {
	for over := false; !over; {
		lifecycle.Pause(ctx, s.subscriber.cfg.CommitInterval)
		over = ctx.Err() != nil
		next := a.take().next
		if len(next) == 0 {
			continue
		}
		if err := generation.CommitOffsets(map[string]map[int]int64{s.topic: next}); err != nil {
			s.logger.Warn("cannot report acknowledgements, some messages will come again", "error", err)
		}
	}
}
