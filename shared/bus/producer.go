package bus

import (
	"context"
	"fmt"
	"sync"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
)

// producer holds the identity that the brokers gave, for all partitions together: sequences are per partition.
type producer struct {
	mu      sync.Mutex
	current identity
	known   bool
}

// get returns the identity, or asks for one. Others wait meanwhile: they need it too.
func (p *producer) get(ask func() (identity, error)) (identity, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.current, nil
	}
	fresh, err := ask()
	if err != nil {
		return identity{}, err
	}
	p.current, p.known = fresh, true
	return fresh, nil
}

// renounce makes the next get ask for a new identity if old is still the current one. Partitions with a batch under way keep old
// until that batch is settled: the brokers still know it.
func (p *producer) renounce(old identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == old {
		p.known = false
	}
}

// newIdentity asks any broker for a producer id. Right after a start Apache Kafka answers "coordinator load in progress" for a
// moment; the caller asks again.
func (c *cluster) newIdentity(ctx context.Context) (identity, error) {
	answer, err := c.ask(ctx, &initproducerid.Request{TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1})
	if err != nil {
		return identity{}, fmt.Errorf("cannot get a producer id: %w", err)
	}
	given := answer.(*initproducerid.Response)
	if given.ErrorCode != 0 {
		return identity{}, fmt.Errorf("cannot get a producer id: %w", kafka.Error(given.ErrorCode))
	}
	return identity{given.ProducerID, given.ProducerEpoch}, nil
}
