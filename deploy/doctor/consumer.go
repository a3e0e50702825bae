package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/pg"
)

// A position is a consumer's position in a partition.
type position struct {
	Group, Topic string
	Partition    int
	Next         int64
	Halted       string // the reason; only weir resume clears it
	TopicID      *[16]byte
	LastOffset   *int64 // of the last record applied, nil: unknown
	LastSum      *int64
}

// A followed topic is one that a consumer group applies.
type followed struct{ group, topic string }

// A consumerChecker compares what a module has applied and read with the topics.
type consumerChecker struct{ *moduleChecker }

// consumers compares positions with the ends of topics.
func (c *consumerChecker) consumers(ctx context.Context) {
	positions, ok := readRows[position](ctx, c.moduleChecker, "consumer",
		`SELECT group_name, topic, partition, next, coalesce(halted, ''), topic_id, last_offset, last_sum FROM bus_positions ORDER BY 1, 2, 3`)
	if !ok {
		return
	}
	if len(positions) == 0 {
		c.report.add(Warn, "consumer", c.name, "it has never applied anything", "Start the service; its log says what keeps it from the brokers.")
	}
	if !c.recheckEnds(ctx, positions) {
		return
	}
	order, byTopic := byFollowed(positions)
	for _, f := range order {
		if topic, seen := c.broker.seen.Topics[f.topic]; seen && topic.Err == nil {
			c.follow(ctx, f, topic, byTopic[f])
		}
	}
}

// byFollowed groups positions, in their order.
func byFollowed(positions []position) (order []followed, byTopic map[followed]map[int]position) {
	byTopic = map[followed]map[int]position{}
	for _, p := range positions {
		f := followed{p.Group, p.Topic}
		if byTopic[f] == nil {
			byTopic[f], order = map[int]position{}, append(order, f)
		}
		byTopic[f][p.Partition] = p
	}
	return order, byTopic
}

// recheckEnds reads again the ends of topics that seem to be before
// positions: consumers run on during the check.
func (c *consumerChecker) recheckEnds(ctx context.Context, positions []position) bool {
	var passed []string
	for _, at := range positions {
		if c.hasPassed(at) && !slices.Contains(passed, at.Topic) {
			passed = append(passed, at.Topic)
		}
	}
	if len(passed) == 0 {
		return true
	}
	return c.look(ctx, "consumer", c.name, "Look at the brokers' logs.", func(ctx context.Context) error {
		later, err := cluster.Look(ctx, c.broker.brokers, c.broker.dialer, passed, topicSettings)
		for name, topic := range later.Topics {
			c.broker.seen.Topics[name], err = topic, errors.Join(err, topic.Err)
		}
		return err
	})
}

// hasPassed reports whether a position is beyond the end that was seen.
func (c *consumerChecker) hasPassed(at position) bool {
	partitions := c.broker.seen.Topics[at.Topic].Partitions
	return at.Partition < len(partitions) && partitions[at.Partition].Led && at.Next > partitions[at.Partition].End
}

// follow checks one group on one topic. Partitions never claimed are
// behind from their start.
func (c *consumerChecker) follow(ctx context.Context, f followed, topic cluster.Topic, positions map[int]position) {
	subject, before := f.group+" on "+f.topic, len(c.report.Findings)
	var behind []position
	records := int64(0)
	for p, partition := range topic.Partitions {
		at, taken := positions[p]
		if !taken {
			at = position{Topic: f.topic, Partition: p, Next: partition.Start}
		}
		if !partition.Led || !c.inLog(subject, at, topic, partition) || !c.keepsLast(ctx, subject, at, partition) {
			continue
		}
		if lag := partition.End - at.Next; lag > 0 {
			behind, records = append(behind, at), records+lag
		}
	}
	c.look(ctx, "consumer", subject, "Look at the brokers' logs: a record that waits can't be read.", func(ctx context.Context) error {
		oldest, err := c.oldest(ctx, topic, behind[:min(len(behind), looked)])
		c.lag(subject, records, oldest)
		return err
	})
	if len(c.report.Findings) == before {
		c.report.add(OK, "consumer", subject, fmt.Sprintf("records behind: %d, partitions: %d", records, len(topic.Partitions)), "")
	}
}

// oldest returns the time of the oldest waiting record at some positions.
func (c *consumerChecker) oldest(ctx context.Context, topic cluster.Topic, behind []position) (oldest time.Time, err error) {
	records := nextOf(topic)
	for _, at := range behind {
		next, err := c.broker.recordAt(ctx, at.Topic, at.Partition, at.Next, min(at.Next+records, topic.Partitions[at.Partition].End))
		if err != nil {
			return oldest, err
		}
		oldest = earlier(oldest, next)
	}
	return oldest, nil
}

// nextOf is how many offsets are read to find a waiting record. A
// compacted topic may lack the next ones; otherwise one is enough, and
// records may be large.
func nextOf(topic cluster.Topic) int64 {
	if strings.Contains(topic.Settings["cleanup.policy"], "compact") {
		return 100
	}
	return 1
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// inLog checks whether a consumer can continue, and reports whether its
// position is in the log.
func (c *consumerChecker) inLog(subject string, at position, topic cluster.Topic, partition cluster.Partition) bool {
	where := fmt.Sprintf("partition %d stands at %d, the log is [%d, %d)", at.Partition, at.Next, partition.Start, partition.End)
	switch {
	case at.Halted != "":
		c.report.add(Fail, "consumer", subject, where+", and it is halted: "+at.Halted,
			"weir resume shows what is lost, and lets the consumer go on. Set no position by hand: offsets would come twice.")
		return false
	case at.TopicID != nil && *at.TopicID != topic.ID:
		c.report.add(Fail, "consumer", subject, where+" of another topic of that name, made since",
			"weir resume shows what is lost with the old one, and lets consumers go on in the new one. Set no position by hand: offsets would come twice.")
		return false
	case at.Next > partition.End:
		c.report.add(Fail, "consumer", subject, where+": the log has lost its end",
			"Look which broker lost data; ingest accepts nothing meanwhile. weir resume shows what is lost, and lets everything go on.")
		return false
	case at.Next < partition.Start:
		c.report.add(Fail, "consumer", subject, where+": what lies between went unread",
			"weir resume shows how much that is, and lets consumers go on without it; make retention.ms longer than any outage.")
		return false
	}
	return true
}

// keepsLast checks whether the log has the last record that a consumer
// has applied: one that lost its end and has grown since has another.
func (c *consumerChecker) keepsLast(ctx context.Context, subject string, at position, partition cluster.Partition) bool {
	if at.LastOffset == nil || at.LastSum == nil || *at.LastOffset >= at.Next || *at.LastOffset < partition.Start {
		return true
	}
	same := true
	read := c.look(ctx, "consumer", subject, "Look at the brokers' logs: a record that was applied can't be read.", func(ctx context.Context) (err error) {
		reader := &logrange.Reader{Brokers: c.broker.brokers, Dialer: c.broker.dialer, Topic: at.Topic}
		same, err = reader.Keeps(ctx, at.Partition, bus.Mark{Offset: *at.LastOffset, Sum: uint32(*at.LastSum)}) //nolint:gosec // it was one
		return err
	})
	if !same {
		c.report.add(Fail, "consumer", subject, fmt.Sprintf("partition %d stands at %d, and the log has another record before it than was applied: "+
			"it lost its end, and has grown since", at.Partition, at.Next),
			"Ingest accepts nothing meanwhile. weir resume shows what is lost, and lets everything go on.")
	}
	return same && read
}

// failureFactor is how many times MaxLag a record may wait before that is a failure.
const failureFactor = 15

func (c *consumerChecker) lag(subject string, behind int64, oldest time.Time) {
	waits := c.now().Sub(oldest)
	if oldest.IsZero() || waits < c.MaxLag {
		return
	}
	level := Warn
	if waits >= failureFactor*c.MaxLag {
		level = Fail
	}
	c.report.add(level, "consumer", subject, fmt.Sprintf("%d records behind, the oldest waits for %s", behind, waits.Round(time.Second)),
		"Look whether the service runs, and in its log what fails; where it only can't keep up, run more processes of it, up to one for each partition.")
}

// A readTopic is how far a module has read a topic into its memory.
type readTopic struct {
	Topic      string
	Partition  int
	TopicID    [16]byte
	LastOffset int64
	LastSum    int64
}

// topicsRead checks that topics have the last records that a module has
// read into its memory.
func (c *consumerChecker) topicsRead(ctx context.Context) {
	read, _ := readRows[readTopic](ctx, c.moduleChecker, "read", `SELECT topic, partition, topic_id, last_offset, last_sum FROM bus_read ORDER BY 1, 2`)
	for _, r := range read {
		topic, seen := c.broker.seen.Topics[r.Topic]
		if !seen || topic.Err != nil {
			continue
		}
		const fix = "A start of this service answers 500 until tenants has published again what is missing: start tenants, and find out which broker lost data."
		subject := c.name + " of " + r.Topic
		has := c.look(ctx, "read", subject, fix, func(ctx context.Context) error { return c.hasRead(ctx, r, topic.ID) })
		if has {
			c.report.add(OK, "read", subject, "the log has what was read last", "")
		}
	}
}

// hasRead returns why a topic lacks the last record that was read of it.
func (c *consumerChecker) hasRead(ctx context.Context, r readTopic, now [16]byte) error {
	if r.TopicID != now {
		return fmt.Errorf("partition %d was read up to %d of another topic of that name", r.Partition, r.LastOffset)
	}
	reader := &logrange.Reader{Brokers: c.broker.brokers, Dialer: c.broker.dialer, Topic: r.Topic}
	kept, err := reader.Keeps(ctx, r.Partition, bus.Mark{Offset: r.LastOffset, Sum: uint32(r.LastSum)}) //nolint:gosec // it was one
	if err == nil && !kept {
		err = fmt.Errorf("partition %d has another record at %d than was read: it has lost its end, and has grown since", r.Partition, r.LastOffset)
	}
	return err
}

// A queueChecker checks what a module has still to apply or to publish.
type queueChecker struct{ *moduleChecker }

// A left lane is what was deferred of an organization over its share.
type left struct {
	Group, Topic  string
	Organizations int64
	Records       int64
	Since         time.Time
	Halted        string
}

// deferred checks what was deferred of organizations that send more
// than their share.
func (c *queueChecker) deferred(ctx context.Context) {
	var lanes []left
	ok := c.look(ctx, "deferred", c.name, "Look at the role's rights.", func(ctx context.Context) error {
		return c.read(ctx, func(tx pgx.Tx) error {
			if err := pg.AsSystem(ctx, tx); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, `SELECT group_name, topic, count(DISTINCT organization), sum(records)::bigint, min(since), coalesce(max(halted), '')
				FROM bus_deferred GROUP BY 1, 2 ORDER BY 1, 2`)
			if err != nil {
				return err
			}
			lanes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[left])
			return err
		})
	})
	if !ok {
		return
	}
	for _, lane := range lanes {
		c.lane(lane)
	}
}

// longDeferred is for how long an organization may be behind by its own load.
const longDeferred = time.Hour

func (c *queueChecker) lane(l left) {
	subject := l.Group + " on " + l.Topic
	seen := fmt.Sprintf("%d records of %d organizations are deferred, since %s", l.Records, l.Organizations, l.Since.UTC().Format(time.RFC3339))
	switch {
	case l.Halted != "":
		c.report.add(Fail, "deferred", subject, seen+", and halted: "+l.Halted,
			"weir resume shows how much is lost, and lets the lane go on without it; make retention.ms longer.")
	case c.now().Sub(l.Since) > longDeferred:
		c.report.add(Warn, "deferred", subject, seen, "These organizations send more than their share for long: run more processes of the module, or talk to them.")
	default:
		c.report.add(OK, "deferred", subject, seen, "")
	}
}

// longBacklog is the largest normal backlog of a working relay, in
// rows: a second of a fast one.
const longBacklog = 10_000

// unpublished checks what is still to be published.
func (c *queueChecker) unpublished(ctx context.Context) {
	for _, source := range c.outboxes {
		var waiting relay.Backlog
		ok := c.look(ctx, "outbox", source.Relay, "Look at the role's rights.", func(ctx context.Context) error {
			return c.read(ctx, func(tx pgx.Tx) (err error) {
				waiting, err = source.Backlog(ctx, tx)
				return err
			})
		})
		if ok {
			c.backlog(source.Relay, waiting)
			c.losses(source.Relay, waiting)
		}
	}
}

// lossShown is how long a loss is shown.
const lossShown = 7 * 24 * time.Hour

// losses shows what a log had lost though it was acknowledged.
func (c *queueChecker) losses(name string, seen relay.Backlog) {
	if seen.Lost == "" || seen.Ago > lossShown {
		return
	}
	c.report.add(Warn, "outbox", name,
		fmt.Sprintf("%s ago the log lacked what the database has: %s; %d messages were published again so far",
			seen.Ago.Round(time.Second), seen.Lost, seen.Republished),
		"Nothing is to be done for these topics. Find out why: the brokers lost what they had acknowledged (a disk that lies, or WEIR_BROKER_SYNC=os and "+
			"a power cut), or the database is of an earlier hour, and weir resume was not run.")
}

func (c *queueChecker) backlog(name string, waiting relay.Backlog) {
	seen := fmt.Sprintf("%d rows are to be published", waiting.Rows)
	switch {
	case waiting.Rows > 0 && !waiting.Held:
		c.report.add(Fail, "outbox", name, seen+", and no process does it", "Start the service; its log says what keeps it from the brokers.")
	case waiting.Rows >= longBacklog:
		c.report.add(Warn, "outbox", name, seen, "Look in the service's log whether the brokers refuse what it publishes, or are slow.")
	default:
		c.report.add(OK, "outbox", name, seen, "")
	}
}

// parked looks for records that no consumer could apply.
func (c *queueChecker) parked(ctx context.Context) {
	var count int64
	var oldest time.Time
	ok := c.look(ctx, "parked", c.name, "Look at the role's rights.", func(ctx context.Context) error {
		return c.read(ctx, func(tx pgx.Tx) (err error) {
			count, oldest, err = parked.Count(ctx, tx)
			return err
		})
	})
	switch {
	case !ok:
	case count > 0:
		c.report.add(Warn, "parked", c.name, fmt.Sprintf("%d records could not be applied, the first at %s", count, oldest.Format(time.RFC3339)),
			"weir parked list shows why; repair the cause, then weir parked replay.")
	default:
		c.report.add(OK, "parked", c.name, "no record is parked", "")
	}
}
