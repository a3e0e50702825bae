package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Cursor is a place in an outbox in commit-safe order: the id of the transaction that wrote a row (xid8), then its position.
type Cursor struct {
	Transaction uint64
	Position    int64
}

// Outgoing is one message of an outbox and its place.
type Outgoing struct {
	Topic   string
	Message *message.Message // with a UUID that is the same each time the row is read
	Cursor  Cursor
}

// RelayConfig says what a Relay publishes. Pool, Name, Publisher and Read are required; zero means the default.
type RelayConfig struct {
	Pool      *pgxpool.Pool // its search_path leads to the tables of Migrations
	Name      string        // owns the cursor: a constant
	Publisher *Publisher

	// Read returns at most limit messages after the cursor, in the order of their cursors, and none whose transaction is not
	// below pg_snapshot_xmin(pg_current_snapshot()): a row of a transaction that is still open may yet come before them.
	Read func(ctx context.Context, tx pgx.Tx, after Cursor, limit int) ([]Outgoing, error)

	Interval time.Duration // between looks when nobody calls Wake; default 1 s
	Batch    int           // most messages at a time; default 500
	Lease    time.Duration // how long a relay that died keeps others waiting; default 10 s

	Metrics prometheus.Registerer // takes the instruments; nil: nobody wants to know
}

// Relay publishes what a database wrote, in order, at least once, one Relay of a name at a time. What is published twice has the
// same ids. A relay that stands still for longer than its lease while a request is on its way may have that request arrive
// after the next relay's: readers of state take the newest version, not the last record.
type Relay struct {
	cfg     RelayConfig
	logger  *slog.Logger
	owner   string
	wake    chan struct{}
	held    lease // of the goroutine that runs
	metrics *relayMetrics
}

// NewRelay returns a relay that works when Run is called.
func NewRelay(cfg RelayConfig, logger *slog.Logger) *Relay {
	cfg.Interval = cmp.Or(cfg.Interval, time.Second)
	cfg.Batch = cmp.Or(cfg.Batch, 500)
	cfg.Lease = cmp.Or(cfg.Lease, 10*time.Second)
	return &Relay{
		cfg: cfg, logger: logger.With("relay", cfg.Name), owner: uuid.NewString(), wake: make(chan struct{}, 1),
		metrics: newRelayMetrics(cfg.Metrics, cfg.Name),
	}
}

// Wake says that there is something to publish. It never blocks; call it after each commit.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends, whatever happens to brokers and database, and then returns nil.
func (r *Relay) Run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		n, err := r.runOnce(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			r.logger.Warn("cannot publish yet", "failures", failures, "error", err)
			pause(ctx, backoff(failures, 50*time.Millisecond, 5*time.Second))
			continue
		}
		failures = 0
		if n == 0 {
			r.rest(ctx)
		}
	}
	r.release(context.WithoutCancel(ctx))
	return nil
}

// rest waits for Wake or the interval. After Wake it looks a few times in quick succession: another transaction that is still
// open may hide the row for a moment.
func (r *Relay) rest(ctx context.Context) {
	timer := time.NewTimer(r.cfg.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-r.wake:
	}
	for wait := time.Millisecond; wait < 200*time.Millisecond && ctx.Err() == nil; wait *= 2 {
		if n, err := r.runOnce(ctx); n > 0 || err != nil {
			return
		}
		pause(ctx, wait)
	}
}

// lease is the right to publish from a cursor on, until its time is over.
type lease struct {
	epoch  int64
	cursor Cursor
	until  time.Time // by this process's clock, never later than by the database's
}

// runOnce publishes one batch and returns its size. 0 means that there is nothing to do, or that another relay does it.
func (r *Relay) runOnce(ctx context.Context) (n int, err error) {
	defer func() { r.metrics.worked(n, r.cfg.Batch, err) }()
	if ok, err := r.hold(ctx); err != nil || !ok {
		return 0, err
	}
	messages, err := r.read(ctx, r.held.cursor)
	if err != nil || len(messages) == 0 {
		return 0, err
	}
	if err := r.publish(ctx, messages); err != nil {
		return 0, err
	}
	return len(messages), r.advance(ctx, messages[len(messages)-1].Cursor)
}

// hold makes sure of the lease for at least half its length. An idle relay writes twice in that time, not at every look.
func (r *Relay) hold(ctx context.Context) (bool, error) {
	began := now()
	if r.held.until.Sub(began) > r.cfg.Lease/2 {
		return true, nil
	}
	r.held = lease{}
	held, ok, err := r.acquire(ctx)
	if err != nil || !ok {
		return false, err
	}
	held.until = began.Add(r.cfg.Lease)
	r.held = held
	return true, nil
}

// withoutWaiting makes a commit not wait for the disk: what a crash of the database takes back is published again, under the same ids.
const withoutWaiting = `SELECT set_config('synchronous_commit', 'off', true)`

// acquire takes or renews the lease.
func (r *Relay) acquire(ctx context.Context) (held lease, ok bool, err error) {
	var transaction int64
	batch := &pgx.Batch{}
	batch.Queue(withoutWaiting)
	batch.Queue(`
		INSERT INTO bus_relays AS b (name, epoch, owner, expires_at) VALUES ($1, 1, $2, clock_timestamp() + $3::interval)
		ON CONFLICT (name) DO UPDATE
		   SET epoch = CASE WHEN b.owner = $2 THEN b.epoch ELSE b.epoch + 1 END, owner = $2, expires_at = clock_timestamp() + $3::interval
		 WHERE b.owner = $2 OR b.expires_at < clock_timestamp()
		RETURNING epoch, transaction, position`, r.cfg.Name, r.owner, r.cfg.Lease).QueryRow(func(row pgx.Row) error {
		return row.Scan(&held.epoch, &transaction, &held.cursor.Position)
	})
	err = r.cfg.Pool.SendBatch(ctx, batch).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return lease{}, false, nil
	}
	if err != nil {
		return lease{}, false, fmt.Errorf("cannot take the lease: %w", err)
	}
	held.cursor.Transaction = uint64(transaction)
	return held, true, nil
}

func (r *Relay) read(ctx context.Context, after Cursor) (messages []Outgoing, err error) {
	err = pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		messages, err = r.cfg.Read(ctx, tx, after, r.cfg.Batch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the outbox: %w", err)
	}
	return messages, nil
}

// publish writes the messages in order: a run of one topic at a time, each waited for, within the lease.
func (r *Relay) publish(ctx context.Context, messages []Outgoing) error {
	ctx, cancel := context.WithDeadline(ctx, r.held.until.Add(-r.cfg.Lease/10))
	defer cancel()
	for len(messages) > 0 {
		n := 0
		var group []*message.Message
		for n < len(messages) && messages[n].Topic == messages[0].Topic {
			group = append(group, messages[n].Message)
			n++
		}
		if _, err := r.cfg.Publisher.PublishContext(ctx, messages[0].Topic, group...); err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// advance moves the cursor unless the lease was lost.
func (r *Relay) advance(ctx context.Context, to Cursor) error {
	began, held := now(), r.held
	r.held = lease{} // until the database has said that it is still ours
	batch := &pgx.Batch{}
	batch.Queue(withoutWaiting)
	batch.Queue(`UPDATE bus_relays SET transaction = $4, position = $5, expires_at = clock_timestamp() + $6::interval
		WHERE name = $1 AND owner = $2 AND epoch = $3`, r.cfg.Name, r.owner, held.epoch, int64(to.Transaction), to.Position, r.cfg.Lease).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return ErrFenced
			}
			return nil
		})
	if err := r.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("cannot move the cursor: %w", err)
	}
	r.held = lease{held.epoch, to, began.Add(r.cfg.Lease)}
	return nil
}

// release lets the next relay begin at once.
func (r *Relay) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := r.cfg.Pool.Exec(ctx, `UPDATE bus_relays SET expires_at = '-infinity' WHERE name = $1 AND owner = $2`, r.cfg.Name, r.owner); err != nil {
		r.logger.Debug("cannot give the lease back", "error", err)
	}
}
