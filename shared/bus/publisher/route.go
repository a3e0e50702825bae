package publisher

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
)

const (
	metadataAge   = time.Minute            // of the layout without failures: new partitions are found this late
	metadataPause = 20 * time.Millisecond  // least time between two requests
	metadataRetry = 100 * time.Millisecond // between requests while a partition has no leader
)

// schedule gives a busy partition to the link of its leader, or keeps
// it until there is one.
func (p *Publisher) schedule(part *partition) {
	p.mu.RLock()
	l := p.links[part.leader.Load()]
	p.mu.RUnlock()
	if l != nil {
		l.push(part)
		return
	}
	p.mu.Lock()
	p.stranded = append(p.stranded, part)
	p.mu.Unlock()
	p.refreshSoon()
}

// refreshSoon asks for new metadata without waiting.
func (p *Publisher) refreshSoon() {
	select {
	case p.refill <- struct{}{}:
	default:
	}
}

// followMetadata keeps the layout current until the publisher ends.
func (p *Publisher) followMetadata() {
	wait := metadataAge
	for {
		timer := time.NewTimer(wait)
		select {
		case <-p.ctx.Done():
			timer.Stop()
			return
		case <-p.refill:
			timer.Stop()
		case <-timer.C:
		}
		wait = p.refresh()
		lifecycle.Pause(p.ctx, metadataPause)
	}
}

// refresh asks once and returns when to ask again.
func (p *Publisher) refresh() time.Duration {
	names := p.topicNames()
	if len(names) == 0 {
		return metadataAge
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.RequestTimeout)
	defer cancel()
	seen, err := p.cluster.Layout(ctx, names...)
	if err == nil {
		p.adopt(seen)
	}
	p.announce(err)
	if p.release() || err != nil {
		return metadataRetry
	}
	return metadataAge
}

func (p *Publisher) topicNames() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	names := make([]string, 0, len(p.topics))
	for name := range p.topics {
		names = append(names, name)
	}
	return names
}

// adopt makes a new layout the current one.
func (p *Publisher) adopt(seen broker.Layout) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, address := range seen.Brokers {
		p.adoptBroker(id, address)
	}
	for name, t := range seen.Topics {
		if known := p.topics[name]; known != nil {
			known.adopt(t)
			p.metrics.observeLayout(name, t)
		}
	}
}

func (p *Publisher) adoptBroker(id int32, address string) {
	if l := p.links[id]; l != nil {
		l.move(address)
		return
	}
	if p.ctx.Err() != nil {
		return
	}
	l := newLink(id, address)
	p.links[id] = l
	for range p.cfg.InFlight {
		w := &worker{publisher: p, link: l}
		p.wg.Go(w.run)
	}
}

// adopt updates the leaders. It never drops partitions: a broker
// without them is behind.
func (t *topic) adopt(seen broker.TopicLayout) {
	t.err = seen.Err
	if seen.Err != nil {
		return
	}
	list := t.list()
	for i := len(list); i < len(seen.Leaders); i++ {
		list = append(list[:len(list):len(list)], &partition{topic: t.name, index: i})
	}
	for i, leader := range seen.Leaders {
		list[i].leader.Store(leader)
	}
	t.partitions.Store(&list)
}

// announce wakes all who wait for a topic.
func (p *Publisher) announce(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problem = err
	close(p.changed)
	p.changed = make(chan struct{})
}

// release reschedules the partitions without a leader and reports
// whether some still have none.
func (p *Publisher) release() bool {
	p.mu.Lock()
	stranded := p.stranded
	p.stranded = nil
	p.mu.Unlock()
	for _, part := range stranded {
		p.expire(part)
		if part.rest() {
			p.schedule(part)
		}
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.stranded) > 0
}

// partitionsOf returns the partitions of a topic. It waits for the
// brokers to name them: RequestTimeout while they answer that the topic
// does not exist, DeliveryTimeout while they do not answer.
func (p *Publisher) partitionsOf(ctx context.Context, name string) ([]*partition, error) {
	if list, _, _ := p.lookup(name, false); len(list) > 0 {
		return list, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.DeliveryTimeout)
	defer cancel()
	for began := clock.Now(); ; {
		list, changed, err := p.lookup(name, true)
		if len(list) > 0 {
			return list, nil
		}
		if isUnknown(err) && clock.Now().Sub(began) >= p.cfg.RequestTimeout {
			return nil, fmt.Errorf("cannot publish to %q: %w", name, err)
		}
		p.refreshSoon()
		select {
		case <-changed:
			lifecycle.Pause(ctx, metadataPause)
		case <-p.ctx.Done():
			return nil, fmt.Errorf("cannot publish to %q: %w", name, bus.ErrClosed)
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot publish to %q: %w: %w", name, err, ctx.Err())
		}
	}
}

// lookup finds a topic; with add, it begins to ask for a missing one.
// err is why it has no partitions.
func (p *Publisher) lookup(name string, add bool) (list []*partition, changed chan struct{}, err error) {
	p.mu.RLock()
	t := p.topics[name]
	changed, err = p.changed, p.problem
	if t != nil && err == nil {
		err = errUnknown(t.err)
	}
	p.mu.RUnlock()
	if t != nil {
		return t.list(), changed, err
	}
	if add {
		p.mu.Lock()
		if p.topics[name] == nil {
			p.topics[name] = &topic{name: name}
		}
		p.mu.Unlock()
	}
	return nil, changed, bus.ErrUnknownTopic
}

// isUnknown reports whether a broker answered that the topic does not exist.
func isUnknown(err error) bool {
	var code kafka.Error
	return errors.Is(err, bus.ErrUnknownTopic) && errors.As(err, &code)
}

func errUnknown(err error) error {
	if err == nil {
		return bus.ErrUnknownTopic
	}
	return fmt.Errorf("%w: %w", bus.ErrUnknownTopic, err)
}

// closeLinks ends the workers.
func (p *Publisher) closeLinks() {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, l := range p.links {
		l.close()
	}
}
