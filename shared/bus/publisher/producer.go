package publisher

import (
	"sync"

	"github.com/weirlog/weir/shared/bus/internal/batch"
)

// producer holds the identity given by the brokers, for all partitions:
// sequences are per partition.
type producer struct {
	mu      sync.Mutex
	current batch.Identity
	known   bool
}

// get returns the identity, or asks for one. Other callers wait
// meanwhile: they need it too.
func (p *producer) get(ask func() (batch.Identity, error)) (batch.Identity, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.current, nil
	}
	fresh, err := ask()
	if err != nil {
		return batch.Identity{}, err
	}
	p.current, p.known = fresh, true
	return fresh, nil
}

// renounce makes the next get ask for a new identity if old is current.
// Partitions with a batch in flight keep old until it is settled: the
// brokers still accept it.
func (p *producer) renounce(old batch.Identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == old {
		p.known = false
	}
}
