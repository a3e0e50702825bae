package publisher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// routes are who leads what: the topics published to, and the brokers.
type routes struct {
	publisher *Publisher
	refill    chan struct{} // asks for new metadata

	mu       sync.RWMutex
	topics   map[string]*topic // bounded by those published to
	links    map[int32]*link
	stranded []*partition  // with messages to send and no leader
	changed  chan struct{} // closed and replaced whenever metadata arrives
	problem  error         // why the last metadata did not arrive
}

func newRoutes(p *Publisher) *routes {
	return &routes{
		publisher: p, refill: make(chan struct{}, 1), changed: make(chan struct{}), topics: make(map[string]*topic), links: make(map[int32]*link),
	}
}

// topic is the publisher's state of one topic. Partitions are only ever added.
type topic struct {
	name       string
	partitions atomic.Pointer[[]*partition]
	err        error // why the brokers do not know it
}

// all returns the partitions of all topics.
func (r *routes) all() (all []*partition) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, t := range r.topics {
		all = append(all, t.list()...)
	}
	return all
}

// schedule gives a busy partition to the link of its leader, or keeps
// it until there is one.
func (r *routes) schedule(part *partition) {
	r.mu.RLock()
	l := r.links[part.leader.Load()]
	r.mu.RUnlock()
	if l != nil {
		l.push(part)
		return
	}
	r.mu.Lock()
	r.stranded = append(r.stranded, part)
	r.mu.Unlock()
	r.refreshSoon()
}

// refreshSoon asks for new metadata without waiting.
func (r *routes) refreshSoon() {
	select {
	case r.refill <- struct{}{}:
	default:
	}
}

// follow keeps the layout current until the publisher ends.
func (r *routes) follow() {
	wait := metadataAge
	for {
		timer := time.NewTimer(wait)
		select {
		case <-r.publisher.workers.ctx.Done():
			timer.Stop()
			return
		case <-r.refill:
			timer.Stop()
		case <-timer.C:
		}
		wait = r.refresh()
		lifecycle.Pause(r.publisher.workers.ctx, metadataPause)
	}
}

// refresh asks once and returns when to ask again.
func (r *routes) refresh() time.Duration {
	names := r.topicNames()
	if len(names) == 0 {
		return metadataAge
	}
	ctx, cancel := context.WithTimeout(r.publisher.workers.ctx, r.publisher.cfg.RequestTimeout)
	defer cancel()
	seen, err := r.publisher.cluster.Layout(ctx, names...)
	if err == nil {
		r.adopt(seen)
	}
	r.announce(err)
	if r.release() || err != nil {
		return metadataRetry
	}
	return metadataAge
}

func (r *routes) topicNames() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := make([]string, 0, len(r.topics))
	for name := range r.topics {
		names = append(names, name)
	}
	return names
}

// adopt makes a new layout the current one.
func (r *routes) adopt(seen broker.Layout) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, address := range seen.Brokers {
		r.adoptBroker(id, address)
	}
	for name, t := range seen.Topics {
		if known := r.topics[name]; known != nil {
			known.adopt(t)
			r.publisher.metrics.observeLayout(name, t)
		}
	}
}

func (r *routes) adoptBroker(id int32, address string) {
	if l := r.links[id]; l != nil {
		l.move(address)
		return
	}
	if r.publisher.workers.ctx.Err() != nil {
		return
	}
	l := newLink(id, address)
	r.links[id] = l
	for range r.publisher.cfg.InFlight {
		w := &worker{publisher: r.publisher, link: l}
		r.publisher.workers.wg.Go(w.run)
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
func (r *routes) announce(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = err
	close(r.changed)
	r.changed = make(chan struct{})
}

// release reschedules the partitions without a leader and reports
// whether some still have none.
func (r *routes) release() bool {
	r.mu.Lock()
	stranded := r.stranded
	r.stranded = nil
	r.mu.Unlock()
	for _, part := range stranded {
		r.publisher.expire(part)
		if part.rest() {
			r.schedule(part)
		}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.stranded) > 0
}

// partitionsOf returns the partitions of a topic. It waits for the
// brokers to name them: RequestTimeout while they answer that the topic
// does not exist, DeliveryTimeout while they do not answer.
func (r *routes) partitionsOf(ctx context.Context, name string) ([]*partition, error) {
	if list, _, _ := r.lookup(name, false); len(list) > 0 {
		return list, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.publisher.cfg.DeliveryTimeout)
	defer cancel()
	for began := clock.Now(); ; {
		list, changed, err := r.lookup(name, true)
		if len(list) > 0 {
			return list, nil
		}
		if isUnknown(err) && clock.Now().Sub(began) >= r.publisher.cfg.RequestTimeout {
			return nil, fmt.Errorf("cannot publish to %q: %w", name, err)
		}
		r.refreshSoon()
		select {
		case <-changed:
			lifecycle.Pause(ctx, metadataPause)
		case <-r.publisher.workers.ctx.Done():
			return nil, fmt.Errorf("cannot publish to %q: %w", name, bus.ErrClosed)
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot publish to %q: %w: %w", name, err, ctx.Err())
		}
	}
}

// lookup finds a topic; with add, it begins to ask for a missing one.
// err is why it has no partitions.
func (r *routes) lookup(name string, add bool) (list []*partition, changed chan struct{}, err error) {
	r.mu.RLock()
	t := r.topics[name]
	changed, err = r.changed, r.problem
	if t != nil && err == nil {
		err = errUnknown(t.err)
	}
	r.mu.RUnlock()
	if t != nil {
		return t.list(), changed, err
	}
	if add {
		r.mu.Lock()
		if r.topics[name] == nil {
			r.topics[name] = &topic{name: name}
		}
		r.mu.Unlock()
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

// close ends the workers.
func (r *routes) close() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, l := range r.links {
		l.close()
	}
}
