package publisher

import (
	"context"
	"sync"

	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// requestBytes is the size from which on a request takes no more partitions.
const requestBytes = 4 << 20

// link queues the ready partitions that one broker leads, for workers
// that each send one request at a time. Partitions that become ready
// while all workers are busy share the next request.
type link struct {
	id int32

	mu      sync.Mutex
	work    *sync.Cond
	address string
	ready   []*partition
	closed  bool
}

func newLink(id int32, address string) *link {
	l := &link{id: id, address: address}
	l.work = sync.NewCond(&l.mu)
	return l
}

// push queues a partition. A closed link ignores it.
func (l *link) push(p *partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.ready = append(l.ready, p)
		l.work.Signal()
	}
}

// pull waits for partitions and takes as many as fit into one request;
// nil: the link is closed.
func (l *link) pull() []*partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ready) == 0 && !l.closed {
		l.work.Wait()
	}
	if l.closed {
		return nil
	}
	n, bytes := 0, 0
	for n < len(l.ready) && bytes < requestBytes {
		bytes += l.ready[n].nextBytes()
		n++
	}
	taken := append([]*partition(nil), l.ready[:n]...)
	l.ready = append(l.ready[:0], l.ready[n:]...)
	if len(l.ready) > 0 {
		l.work.Signal()
	}
	return taken
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.work.Broadcast()
}

func (l *link) at() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.address
}

func (l *link) move(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address = address
}

// worker sends one link's ready partitions over one connection, until
// the link is closed.
type worker struct {
	publisher *Publisher
	link      *link
	conn      *broker.Connection
	address   string // of conn
}

func (w *worker) run() {
	defer w.hangUp()
	for {
		partitions := w.link.pull()
		if partitions == nil {
			return
		}
		w.send(partitions)
	}
}

// shipment is a batch in a request.
type shipment struct {
	partition *partition
	batch     *batch.Batch
}

func (w *worker) send(partitions []*partition) {
	shipments, err := w.load(partitions)
	if err == nil && len(shipments) > 0 {
		err = w.connect()
	}
	if err != nil {
		for _, s := range shipments {
			w.publisher.retry(s, err)
		}
		return
	}
	if len(shipments) > 0 {
		w.ship(shipments)
	}
}

// load takes one batch of each partition that this broker still leads.
// After an error the shipments are not sealed.
func (w *worker) load(partitions []*partition) ([]shipment, error) {
	who, err := w.publisher.identity()
	shipments := make([]shipment, 0, len(partitions))
	for _, part := range partitions {
		w.publisher.expire(part)
		if part.leader.Load() != w.link.id {
			w.publisher.schedule(part)
			continue
		}
		if err != nil {
			shipments = append(shipments, shipment{partition: part})
			continue
		}
		if b := w.take(part, who); b != nil {
			shipments = append(shipments, shipment{part, b})
		}
	}
	return shipments, err
}

// take returns the partition's next batch, sealed. Without one, the
// partition's turn ends.
func (w *worker) take(part *partition, who batch.Identity) *batch.Batch {
	b, sequence, fresh := part.take(who)
	if b == nil {
		w.publisher.rest(part)
	}
	if fresh {
		b.Seal(who, sequence, w.publisher.codecFor(b))
	}
	return b
}

func (w *worker) connect() (err error) {
	address := w.link.at()
	if w.conn != nil && w.address == address {
		return nil
	}
	w.hangUp()
	w.conn, err = broker.Connect(w.publisher.ctx, w.publisher.cluster.Dialer, address)
	w.address = address
	return err
}

func (w *worker) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// ship sends one request and passes its answer to every batch in it.
func (w *worker) ship(shipments []shipment) {
	timeout := w.publisher.cfg.RequestTimeout
	request := &production{clientID: w.publisher.cluster.Dialer.ClientID, shipments: shipments, timeout: timeout, socket: w.conn.Socket}
	if _, err := w.conn.RoundTrip(w.publisher.ctx, timeout, request); err != nil {
		w.hangUp()
		for _, s := range shipments {
			s.batch.Doubtful = true // from here on it may be in the log
			w.publisher.retry(s, err)
		}
		return
	}
	for _, s := range shipments {
		w.publisher.answered(s, request.answerTo(s))
	}
}

// identity returns the producer's identity, and asks the brokers for
// a missing one.
func (p *Publisher) identity() (batch.Identity, error) {
	return p.producer.get(func() (batch.Identity, error) {
		ctx, cancel := context.WithTimeout(p.ctx, p.cfg.RequestTimeout)
		defer cancel()
		return p.cluster.NewIdentity(ctx)
	})
}
