package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Cursor is a place in an outbox in commit-safe order: once a position
// was read, none below it can appear, because writers take turns.
type Cursor struct {
	Position int64
}

// Outgoing is one message of an outbox and its place.
type Outgoing struct {
	Topic   string
	Message *message.Message // its UUID is the same at each read of the row; nil: publish nothing, only move on
	Cursor  Cursor           // the same for all messages that only count together
}

// Config configures a Relay. Pool, Name, Publisher and Read are
// required; zero means the default.
type Config struct {
	Pool      *pgxpool.Pool // its search_path has the tables of Migrations
	Name      string        // owns the cursor; constant
	Publisher *publisher.Publisher

	// Read returns at most limit messages after the cursor, in
	// commit-safe order: none may appear before them later. No
	// messages: nothing is due. tx sees the rows of every organization.
	Read func(ctx context.Context, tx pgx.Tx, after Cursor, limit int) ([]Outgoing, error)

	Interval time.Duration // between looks without Wake; default 1 s
	// Announced says that all writers execute pg.Announce. Then a relay that
	// has the lease looks at what is announced, and else four times in a lease.
	Announced bool
	Batch     int           // most messages at a time; default 500
	Lease     time.Duration // how long an unresponsive relay blocks the next one, 0 if its process ended; default 10 s

	CheckInterval time.Duration // between looks whether the log still has what was published; default 1 min

	Comparisons Comparisons
	Metrics     prometheus.Registerer // for the instruments; nil: none
}

// Comparisons are how the topics are compared with the tables, beside
// the relay's work: at its start, after a loss, and at intervals.
type Comparisons struct {
	// Compare compares. Nil: only what the relay has published is looked for.
	Compare  func(ctx context.Context, published Cursor) (Difference, error)
	Interval time.Duration // default 10 min
	// Lacks reports whether a topic is known to have lost records: then
	// the relay looks and compares at once. May be nil.
	Lacks func() bool
	// Compared is called after a comparison, once all that it found
	// missing is published; may be nil.
	Compared func(ctx context.Context) error
}

// Relay publishes a database's outbox at least once, one Relay of a name
// at a time: in order within a topic, and topic by topic within a page.
// A message published twice has the same id.
//
// A relay that lost its lease moves the cursor back to where it began:
// its messages may have arrived after those of the next relay, which
// then publishes them and all later ones again. So the last record of a
// key is the newest again. A relay whose process ended is replaced at
// once (see livenessLock). The outcome of its messages in flight is
// unknown, so the next one repeats what it published under the dead
// one's lease once that lease is over.
//
// A relay also publishes again what a log has lost though the brokers
// acknowledged it: see heal.
type Relay struct {
	cfg     Config
	logger  *slog.Logger
	wake    chan struct{}
	metrics *relayMetrics

	// Used only by the goroutine of Run:
	lease    leaseholder
	limit    int  // of the next page: Batch, less after failures
	underWay bool // the last page may yet be written, or not

	published  published
	comparison comparison
}

// New returns a relay that starts when Run is called.
func New(cfg Config, logger *slog.Logger) *Relay {
	cfg.Interval = cmp.Or(cfg.Interval, time.Second)
	cfg.Batch = cmp.Or(cfg.Batch, 500)
	cfg.Lease = cmp.Or(cfg.Lease, 10*time.Second)
	cfg.CheckInterval = cmp.Or(cfg.CheckInterval, time.Minute)
	cfg.Comparisons.Interval = cmp.Or(cfg.Comparisons.Interval, 10*time.Minute)
	if cfg.Comparisons.Lacks == nil {
		cfg.Comparisons.Lacks = func() bool { return false }
	}
	logger = logger.With("relay", cfg.Name)
	return &Relay{
		cfg: cfg, logger: logger, wake: make(chan struct{}, 1), lease: leaseholder{cfg: cfg, logger: logger, owner: uuid.NewString()}, limit: cfg.Batch,
		metrics: newRelayMetrics(cfg.Metrics, cfg.Name), published: published{to: cfg.Publisher, topics: make(map[string]string)},
	}
}

// Wake makes the relay look at its outbox at once. It never blocks;
// call it after each commit.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends, despite failures of brokers and
// database, and then returns nil.
func (r *Relay) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer r.comparison.end(cancel)
	failures := 0
	for ctx.Err() == nil {
		more, err := r.runOnce(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			if failures&(failures-1) == 0 { // ever more rarely
				r.logger.Warn("cannot publish yet", "failures", failures, "error", err)
			}
			lifecycle.Pause(ctx, clock.Backoff(failures, 50*time.Millisecond, r.longestPause()))
			continue
		}
		failures = 0
		if !more {
			r.rest(ctx)
		}
	}
	r.lease.release(context.WithoutCancel(ctx), r.underWay)
	return nil
}

// shortestInterval is the shortest pause between attempts while broker
// or database are away, whatever the interval.
const shortestInterval = 200 * time.Millisecond

// longestPause returns the longest pause after a failure: no longer
// than without one, so that a returning broker is used soon.
func (r *Relay) longestPause() time.Duration {
	return min(max(r.cfg.Interval, shortestInterval), 5*time.Second)
}

// rest waits for Wake, the next announcement, or the time to look anyway.
func (r *Relay) rest(ctx context.Context) {
	ears := r.lease.ears()
	longest := r.cfg.Interval
	if ears != nil {
		longest = max(longest, r.cfg.Lease/4)
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if ears == nil {
			<-ctx.Done()
			return
		}
		pg.Hear(ctx, ears) // if the connection is lost, the next rest looks at intervals
	}()
	select {
	case <-r.wake:
	case <-heard:
	}
	cancel()
	<-heard
}

// runOnce publishes one page, if it has or gets the lease, and reports
// whether more may be due.
func (r *Relay) runOnce(ctx context.Context) (more bool, err error) {
	empty := false
	defer func() { r.metrics.worked(empty || !more) }()
	if err := r.lease.takeBack(ctx); err != nil {
		return true, err
	}
	if ok, err := r.lease.hold(ctx, &r.published); err != nil || !ok {
		return err != nil, err
	}
	limit := r.limit
	healed := r.heal(ctx)
	if healed == nil {
		r.lease.repeat()
	}
	page, err := r.read(ctx, r.lease.held.cursor)
	empty = err == nil && len(page) == 0
	if err = errors.Join(healed, err); err != nil {
		return true, err
	}
	if empty {
		return false, r.compare(ctx)
	}
	n, err := r.publish(ctx, page)
	r.limit, r.underWay = r.cfg.Batch, errors.Is(err, bus.ErrUnknownOutcome)
	if err != nil {
		r.limit = max(1, len(page)/2) // a slow or unsendable message must not delay those before it
	}
	to := r.lease.held.cursor
	if n > 0 {
		to = page[n-1].Cursor
	}
	if err != nil {
		r.published.coming = nil
	}
	err = errors.Join(err, r.advance(ctx, to, r.published.repeated(page[:n])))
	if err != nil || n == limit {
		return true, err
	}
	return false, r.compare(ctx)
}

// ignoreNoRows drops the error of a missing row.
func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// advance moves the cursor unless the lease was lost, and counts what
// was published again.
func (r *Relay) advance(ctx context.Context, to Cursor, repeated int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/4)
	defer cancel()
	began, held := clock.Now(), r.lease.held
	r.lease.held = lease{} // until the database confirms that it is still ours
	batch := &pgx.Batch{}
	batch.Queue(asyncCommit)
	marks := r.published.merged()
	batch.Queue(`UPDATE bus_relays SET position = $4, expires_at = clock_timestamp() + $5::interval, marks = $6::jsonb, republished = republished + $7
		WHERE name = $1 AND owner = $2 AND epoch = $3`, r.cfg.Name, r.lease.owner, held.epoch, to.Position, r.cfg.Lease, encode(marks), repeated).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return bus.ErrFenced
			}
			return nil
		})
	if err := r.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("cannot move the cursor: %w", err)
	}
	r.lease.held, r.lease.begun = lease{held.epoch, to, began.Add(r.cfg.Lease)}, nil
	r.published.marks, r.published.coming = marks, nil
	r.metrics.republished.Add(float64(repeated))
	return nil
}

// A Source is a table whose rows a relay publishes in the order of their positions.
type Source struct {
	Relay string
	Table string
}

// A Backlog is what a relay still has to publish, and what it has
// published again.
type Backlog struct {
	Rows int64 // counted to at most 100,000
	Held bool  // a process has the lease

	Lost        string        // what a log had lost when the relay last found a loss; empty: it never did
	Ago         time.Duration // since then
	Republished int64         // messages, since ever
}

const maxCounted = 100_000

// Backlog counts in the schema of tx.
func (s Source) Backlog(ctx context.Context, tx pgx.Tx) (b Backlog, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return b, err
	}
	err = tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM (SELECT FROM `+pgx.Identifier{s.Table}.Sanitize()+`
			WHERE position > coalesce((SELECT position FROM bus_relays WHERE name = $1), 0) LIMIT $2) AS waiting),
		EXISTS (SELECT FROM bus_relays WHERE name = $1 AND expires_at > clock_timestamp())`, s.Relay, maxCounted).Scan(&b.Rows, &b.Held)
	if err != nil {
		return b, fmt.Errorf("cannot count what %s has still to publish: %w", s.Relay, err)
	}
	err = tx.QueryRow(ctx, `SELECT lost, clock_timestamp() - lost_at, republished FROM bus_relays WHERE name = $1 AND lost_at IS NOT NULL`, s.Relay).
		Scan(&b.Lost, &b.Ago, &b.Republished)
	if err := ignoreNoRows(err); err != nil {
		return b, fmt.Errorf("cannot see what %s has published again: %w", s.Relay, err)
	}
	return b, nil
}

type relayMetrics struct {
	records     prometheus.Counter
	republished prometheus.Counter

	mu     sync.Mutex
	behind time.Time // since when the outbox has more than was read; zero: it has not
}

func newRelayMetrics(registerer prometheus.Registerer, name string) *relayMetrics {
	labels := prometheus.Labels{"relay": name}
	m := &relayMetrics{records: promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_relayed_records_total", Help: "Messages of the outbox that were published.", ConstLabels: labels,
	})}
	m.republished = promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_republished_records_total", Help: "Messages of the outbox that were published again, because the log had lost them.",
		ConstLabels: labels,
	})
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_bus_relay_lag_seconds", Help: "Since when the relay did not get to the end of its outbox; 0 where another relay works.",
		ConstLabels: labels,
	}, m.lag)
	return m
}

// worked notes whether a look at the outbox got to its end. One that
// failed with nothing to publish did.
func (m *relayMetrics) worked(ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ended:
		m.behind = time.Time{}
	case m.behind.IsZero():
		m.behind = clock.Now()
	}
}

func (m *relayMetrics) lag() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.behind.IsZero() {
		return 0
	}
	return clock.Now().Sub(m.behind).Seconds()
}

// Rewind makes a relay start again at the first row of its outbox. The
// higher epoch takes the lease from a running relay.
func Rewind(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `UPDATE bus_relays SET position = 0, epoch = epoch + 1 WHERE name = $1`, name); err != nil {
		return fmt.Errorf("cannot rewind %s: %w", name, err)
	}
	return nil
}

// ReleaseLeases ends all leases of a schema: in a copy of a database
// nobody holds those of the original.
func ReleaseLeases(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE bus_relays SET epoch = epoch + 1, owner = '', expires_at = '-infinity'`); err != nil {
		return fmt.Errorf("cannot free the relays: %w", err)
	}
	return nil
}
