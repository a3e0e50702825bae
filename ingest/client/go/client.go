package weir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// A Client sends entries in the background until it is closed. Its methods may
// be called at once.
type Client struct {
	limits               Limits
	tail                 string // members that entries have by default
	environment, project string

	queue   *queue
	losses  *losses
	backlog *backlog
	sender  *sender

	cancel context.CancelFunc
	ending sync.Once
	ended  chan struct{}
	work   sync.WaitGroup
}

// tellEvery is how often OnDrop learns of drops.
const tellEvery = time.Second

// New returns a client that sends until [Client.Close]. Its errors name the
// setting that is wrong, and never the API key.
func New(options Options) (*Client, error) {
	o := options.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	transport, err := o.transport()
	if err != nil {
		return nil, err
	}
	return open(o, transport)
}

func open(o Options, transport http.RoundTripper) (*Client, error) {
	disk, err := openSpool(o.Spool)
	if err != nil {
		return nil, err
	}
	backlog, err := newBacklog(disk, o.Spool.Bytes)
	if err != nil {
		disk.close()
		return nil, err
	}
	l := &losses{onDrop: o.OnDrop}
	c := &Client{
		limits: o.Limits, tail: tailOf(o.Environment, o.ProjectID), environment: o.Environment, project: o.ProjectID,
		queue: newQueue(o.Limits, l), losses: l, backlog: backlog, ended: make(chan struct{}),
	}
	c.sender = newSender(o, transport, c)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for _, loop := range []func(context.Context){c.collect, c.sender.run, c.tell} {
		c.work.Go(func() { loop(ctx) })
	}
	return c, nil
}

// Format prints a client without what it holds.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "weir.Client") }

// Log sends an entry. It neither blocks nor fails: [Client.Stats] says what
// became of it.
func (c *Client) Log(entry Entry) {
	e := encoders.Get().(*encoder)
	defer e.free()
	if entry.Time.IsZero() {
		entry.Time = time.Now()
	}
	level := levelOf(entry.Level)
	e.buf = appendHead(e.buf, entry.Time, level, entry.Message)
	if len(entry.Metadata) > 0 {
		e.buf = append(e.buf, `,"metadata":`...)
		e.object(entry.Metadata)
	}
	if entry.Error != nil {
		var pcs []uintptr
		if level >= levelError {
			pcs = callers(make([]uintptr, maxFrames), 0)
		}
		e.faultOf(entry.Error, pcs)
	}
	tail := c.tail
	if entry.Environment != "" || entry.ProjectID != "" {
		tail = tailOf(cmp.Or(entry.Environment, c.environment), cmp.Or(entry.ProjectID, c.project))
	}
	c.push(level, e, tail)
}

// push takes in an entry whose object is not closed.
func (c *Client) push(level int, e *encoder, tail string) {
	e.buf = append(append(e.buf, tail...), '}')
	c.queue.push(level, bytes.Clone(e.buf))
}

// Flush waits until every earlier entry is accepted or dropped.
func (c *Client) Flush(ctx context.Context) error {
	last, done := c.queue.urge(), false
	err := c.backlog.await(ctx, func() bool {
		done = c.settled(last)
		return done || c.sender.denied.Load() != nil || c.isEnded()
	})
	switch denied := c.sender.denied.Load(); {
	case err != nil:
		return fmt.Errorf("weir: entries still wait to be sent: %w", err)
	case denied != nil:
		return *denied
	case !done:
		return errors.New("weir: the client was closed before all entries were sent")
	}
	return nil
}

// settled says whether nothing up to a number is outstanding, nor a notice
// that could be sent. It needs the lock of the backlog.
func (c *Client) settled(last uint64) bool {
	_, arrived := c.losses.state()
	return c.queue.outstanding() > last && c.backlog.outstanding() > last && (arrived || c.sender.failing.Load())
}

// hasNotice says whether a notice should go, if need be by itself.
func (c *Client) hasNotice() bool {
	fresh, _ := c.losses.state()
	return fresh && !c.sender.failing.Load()
}

func (c *Client) isEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Close takes in no more entries, sends what waits until ctx is done, and ends
// the client: nothing is sent after it. What is left is dropped, or stays in
// the spool. Give ctx a deadline: without one, Close lasts as long as Weir is
// away.
func (c *Client) Close(ctx context.Context) error {
	c.queue.refuse(Closed)
	err := c.Flush(ctx)
	c.ending.Do(func() {
		c.cancel()
		c.work.Wait()
		c.leave()
		c.losses.tell()
		c.backlog.spool.close()
		c.sender.http.CloseIdleConnections()
		close(c.ended)
		c.backlog.notify()
	})
	<-c.ended
	return err
}

// leave saves what waits, or drops it.
func (c *Client) leave() {
	for c.backlog.spool != nil && c.backlog.fits() {
		items := c.queue.take(c.limits.BatchEntries)
		if len(items) == 0 {
			break
		}
		if err := c.backlog.put(newBatch(items, nil, time.Now())); err != nil {
			c.sender.onError(err)
			break
		}
	}
	c.queue.refuse(Closed)
	c.queue.empty(Closed)
	c.losses.add(Closed, c.backlog.dropUnsaved())
}

// Stats says what became of entries so far.
func (c *Client) Stats() Stats {
	return Stats{Accepted: c.sender.accepted.Load(), Dropped: c.losses.dropped(), Waiting: c.queue.waiting() + c.backlog.waiting()}
}

// tell reports drops, which nobody else waits for.
func (c *Client) tell(ctx context.Context) {
	for every := time.NewTicker(tellEvery); ; {
		select {
		case <-every.C:
			c.losses.tell()
			c.queue.rouse() // a notice may be due
		case <-ctx.Done():
			every.Stop()
			return
		}
	}
}

// collect makes batches of what waits.
func (c *Client) collect(ctx context.Context) {
	for c.ready(ctx) && c.backlog.room(ctx) == nil {
		now, most := time.Now(), c.limits.BatchEntries
		notice, said := c.losses.notice(now, c.tail)
		if notice != nil && most > 1 {
			most--
		}
		if items := c.queue.take(most); len(items) > 0 || notice != nil {
			b := newBatch(items, notice, now)
			b.notice = said
			if err := c.backlog.put(b); err != nil {
				c.sender.onError(err)
			}
		}
		c.queue.done()
		c.backlog.notify()
	}
}

// ready waits until a batch is full, its first entry has waited long enough,
// or somebody flushes.
func (c *Client) ready(ctx context.Context) bool {
	var due <-chan time.Time
	for {
		some, now := c.queue.state()
		if now {
			return true
		}
		if due == nil && (some || c.hasNotice()) {
			timer := time.NewTimer(c.limits.BatchDelay)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-c.queue.wake:
		case <-due:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
