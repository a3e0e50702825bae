package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/status"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/tracing"
)

// Handler applies records inside tx, which also moves their positions and
// acts as the system (see pg.AsSystem).
// It returns Permanent(err) for a record that can never be applied;
// after any other error the same records come again. It must not keep
// tx. After a rollback it may get the same records again, all or in
// smaller groups. Records of one partition come in order; with Lanes,
// those of one lane in one partition.
type Handler func(ctx context.Context, tx pgx.Tx, records []bus.Record) error

// Config configures a Consumer. Brokers, Group, Topic, Pool and Handle
// are required; zero means the default.
type Config struct {
	Brokers []string
	Dialer  *kafka.Dialer // TLS, SASL, client id
	Group   string        // owns the positions; constant
	Topic   string
	Pool    *pgxpool.Pool // its search_path has the tables of Migrations

	MaxRecords int // most records of one transaction; default 1000
	MaxBytes   int // most bytes of one transaction, unless one record is larger; default 8 MiB

	// MaxWait is the least time between the starts of two transactions
	// that are not full: it bounds how many there are, and how long a
	// record waits for others. After a pause a record waits for a tenth of
	// it. Default 250 ms.
	MaxWait time.Duration

	// AcceptLost lets a partition that was never read begin after the
	// lost beginning of its log. Otherwise it is stopped: data derived
	// from the log would silently lack records.
	AcceptLost bool

	// Rereads lets a partition whose log lost its end, or was recreated,
	// begin again at the log's start. It is for compacted topics whose
	// owner publishes again what they lose; Handle takes records again
	// without effect. Otherwise the partition is stopped.
	Rereads bool

	// Erased reports whether a record must not be kept because its
	// organization is deleted: it is parked empty. nil: all are parked
	// whole. tx acts as the system.
	Erased func(ctx context.Context, tx pgx.Tx, record bus.Record) (bool, error)

	Fillers   bool // Handle gets fillers as well: it accounts for each offset
	Handle    Handler
	Lanes     Lanes              // divide the records, so that no lane waits for another's; zero: all in order
	Committed func([]bus.Record) // called after each commit with its records, unless a rebalance hid its outcome; may be nil

	Metrics prometheus.Registerer // for the instruments; nil: none
	Tracer  *tracing.Tracer       // links transactions to the requests of their records; nil: none

	Tuning
}

// Tuning are the sizes and intervals of a Consumer that suit all modules.
type Tuning struct {
	// TransactionTimeout limits one transaction, Handle and commit
	// included. After it the connection is dropped and the same records
	// come again; default 1 minute. It is for a database that neither
	// answers nor closes the connection.
	TransactionTimeout time.Duration

	BufferBytes int           // most bytes fetched ahead; default 2 MaxBytes
	FetchWait   time.Duration // how long a broker may delay an empty answer, which costs it a request; default 5 s

	HeartbeatInterval time.Duration // default 2 s; the longest until a rebalance is noticed
	SessionTimeout    time.Duration // default 8 s, until a dead member's partitions are reassigned; brokers want 6 s or more
	RebalanceTimeout  time.Duration // default 15 s
	JoinBackoff       time.Duration // default 500 ms, between attempts to join the group
	PartitionWatch    time.Duration // default 15 s, between queries for new partitions
	ParkedWatch       time.Duration // default 5 s, between queries for parked records to replay
	EndWatch          time.Duration // default 10 s, between queries for the ends of logs not fully applied, and comparisons of positions with them
}

func (c Config) withDefaults() Config {
	c.MaxRecords = cmp.Or(c.MaxRecords, 1000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 8<<20)
	c.MaxWait = cmp.Or(c.MaxWait, 250*time.Millisecond)
	c.TransactionTimeout = cmp.Or(c.TransactionTimeout, time.Minute)
	c.BufferBytes = cmp.Or(c.BufferBytes, 2*c.MaxBytes)
	c.FetchWait = cmp.Or(c.FetchWait, 5*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, 2*time.Second)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 8*time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 15*time.Second)
	c.JoinBackoff = cmp.Or(c.JoinBackoff, 500*time.Millisecond)
	c.Lanes = c.Lanes.WithDefaults()
	c.PartitionWatch = cmp.Or(c.PartitionWatch, 15*time.Second)
	c.ParkedWatch = cmp.Or(c.ParkedWatch, 5*time.Second)
	c.EndWatch = cmp.Or(c.EndWatch, 10*time.Second)
	if c.Dialer == nil {
		c.Dialer = &kafka.Dialer{ClientID: "weir", Timeout: bus.DefaultDialTimeout}
	}
	if c.Committed == nil {
		c.Committed = func([]bus.Record) {}
	}
	if c.Erased == nil {
		c.Erased = func(context.Context, pgx.Tx, bus.Record) (bool, error) { return false, nil }
	}
	return c
}

func (c Config) validate() error {
	var missing []error
	for name, absent := range map[string]bool{
		"Brokers": len(c.Brokers) == 0, "Group": c.Group == "", "Topic": c.Topic == "", "Pool": c.Pool == nil, "Handle": c.Handle == nil,
	} {
		if absent {
			missing = append(missing, fmt.Errorf("%s is missing", name))
		}
	}
	return errors.Join(missing...)
}

// Lanes divide a consumer's work, so that no tenant waits
// for another's records.
type Lanes = lanes.Config

// Consumer applies each record of a topic once: one transaction of the
// handler's database moves the positions and has the effect, or
// neither. The Kafka group only assigns partitions. Any number of
// Consumers of one group, in any number of processes, share them.
type Consumer struct {
	cfg     Config
	logger  *slog.Logger
	cluster *broker.Cluster
	store   *positions.Store
	status  *status.Status
	metrics status.Metrics
}

// New returns a consumer that joins its group when Run is called.
func New(cfg Config, logger *slog.Logger) (*Consumer, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cannot make a consumer of %q: %w", cfg.Topic, err)
	}
	cfg = cfg.withDefaults()
	logger = logger.With("group", cfg.Group, "topic", cfg.Topic)
	store := &positions.Store{
		Pool: cfg.Pool, Group: cfg.Group, Topic: cfg.Topic, Timeout: cfg.TransactionTimeout, IdleTimeout: cfg.SessionTimeout, Logger: logger,
	}
	c := &Consumer{
		cfg: cfg, logger: logger, cluster: broker.NewCluster(cfg.Brokers, cfg.Dialer), store: store, status: status.New(cfg.Group, cfg.Topic),
	}
	c.metrics = status.NewMetrics(c.status, cfg.Metrics)
	return c, nil
}

// Ready returns nil once the consumer has its partitions, however much it
// has to apply (see Backlog). It returns an error with the reason while a
// partition has no leader yet, and while one, or a lane in one, is stopped
// because its position is outside the log.
func (c *Consumer) Ready() error { return c.status.Ready() }

// LogIntact returns nil while every position of the group, whichever member has
// the partition, lies in the topic's log, with the record before it as
// it was applied. Otherwise its error says why, and names the way out.
// It is one until WatchLog has compared them; a log is trusted while
// the database has not been reached since the start.
func (c *Consumer) LogIntact() error { return c.status.Log.Intact() }

// A Backlog is what was in the log when a consumer got its partitions,
// and is not applied yet.
type Backlog = status.Backlog

// Backlog returns it until it is applied.
func (c *Consumer) Backlog() (backlog Backlog, exists bool) { return c.status.Reach.Backlog(c.Lag()) }

// Lag returns each assigned partition's distance from the end of its
// log, in offsets, including deferred records.
func (c *Consumer) Lag() map[int]int64 { return c.status.Lag() }

// Run waits for the topic, joins the group and applies records until ctx
// ends, despite failures of brokers and database, and then returns nil.
func (c *Consumer) Run(ctx context.Context) error {
	broker.AwaitTopic(ctx, c.cluster, c.cfg.Topic, c.logger)
	group, err := kafka.NewConsumerGroup(c.groupConfig())
	if err != nil {
		return fmt.Errorf("cannot join group %q: %w", c.cfg.Group, err)
	}
	defer group.Close()
	for failures := 0; ctx.Err() == nil; {
		broker.AwaitTopic(ctx, c.cluster, c.cfg.Topic, c.logger) // without it kafka-go would keep joining
		generation, err := group.Next(ctx)
		if err != nil {
			c.logger.Debug("not in the group yet", "error", err)
			continue // kafka-go itself waits JoinBackoff
		}
		if err := c.serve(ctx, generation, failures); err != nil {
			failures++
		} else {
			failures = 0
		}
	}
	return nil
}

func (c *Consumer) groupConfig() kafka.ConsumerGroupConfig {
	return kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: []string{c.cfg.Topic}, Dialer: c.cfg.Dialer,
		HeartbeatInterval: c.cfg.HeartbeatInterval, SessionTimeout: c.cfg.SessionTimeout, RebalanceTimeout: c.cfg.RebalanceTimeout,
		JoinGroupBackoff: c.cfg.JoinBackoff, WatchPartitionChanges: true, PartitionWatchInterval: c.cfg.PartitionWatch,
		StartOffset: kafka.FirstOffset, Timeout: broker.RequestTimeout / 2,
	}
}

// serve works as a member of one generation until it ends, or leaves
// early after an error. The pause before keeps a failing consumer from
// rebalancing the group all the time.
func (c *Consumer) serve(ctx context.Context, generation *kafka.Generation, failures int) error {
	var failed error
	done := make(chan struct{})
	generation.Start(func(member context.Context) {
		defer close(done)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(member, cancel)()
		if failed = c.work(ctx, generation); failed != nil && ctx.Err() == nil {
			c.logger.Warn("releasing partitions", "error", failed)
			lifecycle.Pause(ctx, clock.Backoff(failures+1, 100*time.Millisecond, 5*time.Second))
		}
	})
	<-done
	c.status.Leave()
	return failed
}

// work claims the assigned partitions and applies their records.
func (c *Consumer) work(ctx context.Context, generation *kafka.Generation) error {
	var partitions []int
	for _, a := range generation.Assignments[c.cfg.Topic] {
		partitions = append(partitions, a.ID)
	}
	if len(partitions) == 0 {
		return c.idle(ctx)
	}
	a, err := c.claim(ctx, generation.MemberID, partitions)
	if err != nil {
		return err
	}
	c.logger.Info("working", "partitions", len(partitions), "generation", generation.ID)
	return a.run(ctx, generation)
}

// idle is for a member without partitions. It makes sure that others
// have them all: kafka-go assigns none of a topic that is missing while
// the group forms, and does not look again.
func (c *Consumer) idle(ctx context.Context) error {
	for unclaimed := 0; ctx.Err() == nil; lifecycle.Pause(ctx, c.cfg.PartitionWatch) {
		claimed, err := c.claimedByOthers(ctx)
		switch {
		case err != nil:
			c.logger.Debug("cannot see whether all partitions are worked on", "error", err)
		case claimed:
			unclaimed = 0
			c.status.Idle()
		case unclaimed < 2:
			unclaimed++
		default:
			return errors.New("got no partitions, and no other member has them")
		}
	}
	return nil
}

// claimedByOthers reports whether each partition of the topic was ever
// claimed. An operator resumes stopped ones.
func (c *Consumer) claimedByOthers(ctx context.Context) (bool, error) {
	seen, err := c.cluster.Layout(ctx, c.cfg.Topic)
	if err != nil {
		return false, err
	}
	t := seen.Topics[c.cfg.Topic]
	if t.Err != nil {
		return false, t.Err
	}
	return c.store.AllClaimed(ctx, t.ID, len(t.Leaders))
}

func (a *assignment) moverOf(w lanes.Work) transaction.Mover {
	ends := w.Ends()
	if w.Lane != nil {
		from := a.backlogs.all[*w.Lane]
		to := from.Advanced(w.Records, ends[w.Lane.Partition])
		return &catchUp{a, positions.CatchUp{Store: a.consumer.store, From: from, To: to, Epoch: a.claims[w.Lane.Partition].Epoch}}
	}
	m := &advance{a, positions.Advance{Store: a.consumer.store, Deferring: a.backlogs.all.Extended(a.log.topic, w.Deferred), Known: a.backlogs.all}}
	marks := w.Marks()
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		m.Last = append(m.Last, marks[p])
		m.Partitions = append(m.Partitions, p)
		m.Since = append(m.Since, a.claims[p].Next)
		m.Until = append(m.Until, ends[p])
		m.Epochs = append(m.Epochs, a.claims[p].Epoch)
	}
	return m
}

// advance moves the positions of partitions, and defers records.
type advance struct {
	a *assignment
	positions.Advance
}

func (m *advance) Committed() {
	until := make(map[int]int64, len(m.Partitions))
	for i, p := range m.Partitions {
		m.a.claims[p].Next = m.Until[i]
		until[p] = m.Until[i]
	}
	for _, b := range m.Deferring {
		m.a.backlogs.keep(b)
	}
	m.a.consumer.status.Reach.Applied(until)
	m.a.report(m.Partitions...)
}

// catchUp moves a lane's position in one partition.
type catchUp struct {
	a *assignment
	positions.CatchUp
}

func (m *catchUp) Committed() {
	if m.To.Over() {
		m.a.backlogs.finish(m.To.Key)
	} else {
		m.a.backlogs.keep(m.To)
	}
	m.a.report(m.To.Partition)
}

// report notes how far the partitions are applied, lanes included, for
// the Kafka group.
func (a *assignment) report(partitions ...int) {
	low := make(map[int]int64, len(partitions))
	for _, p := range partitions {
		low[p] = a.claims[p].Next
	}
	a.backlogs.all.Lower(low)
	a.progress.offsets.note(low)
}

// groupOffsets are positions to commit to the Kafka group, for tools
// that show lag. Weir itself reads none.
type groupOffsets struct {
	mu      sync.Mutex
	pending map[int]int64
}

func newGroupOffsets() *groupOffsets { return &groupOffsets{pending: make(map[int]int64)} }

func (o *groupOffsets) note(positions map[int]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.pending, positions)
}

func (o *groupOffsets) take() map[int]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.pending
	o.pending = make(map[int]int64)
	return taken
}

func (c *Consumer) commitOffsets(ctx context.Context, of *groupOffsets, generation *kafka.Generation) {
	for ctx.Err() == nil {
		lifecycle.Pause(ctx, time.Second)
		offsets := of.take()
		if len(offsets) == 0 {
			continue
		}
		if err := generation.CommitOffsets(map[string]map[int]int64{c.cfg.Topic: offsets}); err != nil {
			c.logger.Debug("cannot commit offsets to the group", "error", err)
		}
	}
}
