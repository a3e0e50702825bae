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

// consumers compares positions with the ends of topics.
func (e *examination) consumers(ctx context.Context, o opened) {
	positions, ok := readRows[position](ctx, e, o, "consumer",
		`SELECT group_name, topic, partition, next, coalesce(halted, ''), topic_id, last_offset, last_sum FROM bus_positions ORDER BY 1, 2, 3`)
	if !ok {
		return
	}
	if len(positions) == 0 {
		e.report.add(Warn, "consumer", o.name, "it has never applied anything", "Start the service; its log says what keeps it from the brokers.")
	}
	if !e.recheckEnds(ctx, o, positions) {
		return
	}
	order, byTopic := byFollowed(positions)
	for _, f := range order {
		if topic, seen := e.seen.Topics[f.topic]; seen && topic.Err == nil {
			e.follow(ctx, f, topic, byTopic[f])
		}
	}
	e.deferred(ctx, o)
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
func (e *examination) recheckEnds(ctx context.Context, o opened, positions []position) bool {
	var passed []string
	for _, at := range positions {
		if e.hasPassed(at) && !slices.Contains(passed, at.Topic) {
			passed = append(passed, at.Topic)
		}
	}
	if len(passed) == 0 {
		return true
	}
	return e.look(ctx, "consumer", o.name, "Look at the brokers' logs.", func(ctx context.Context) error {
		later, err := cluster.Look(ctx, e.brokers, e.dialer, passed, topicSettings)
		for name, topic := range later.Topics {
			e.seen.Topics[name], err = topic, errors.Join(err, topic.Err)
		}
		return err
	})
}

// hasPassed reports whether a position is beyond the end that was seen.
func (e *examination) hasPassed(at position) bool {
	partitions := e.seen.Topics[at.Topic].Partitions
	return at.Partition < len(partitions) && partitions[at.Partition].Led && at.Next > partitions[at.Partition].End
}

// follow checks one group on one topic. Partitions never claimed are
// behind from their start.
func (e *examination) follow(ctx context.Context, f followed, topic cluster.Topic, positions map[int]position) {
	subject, before := f.group+" on "+f.topic, len(e.report.Findings)
	var behind []position
	records := int64(0)
	for p, partition := range topic.Partitions {
		at, taken := positions[p]
		if !taken {
			at = position{Topic: f.topic, Partition: p, Next: partition.Start}
		}
		if !partition.Led || !e.inLog(subject, at, topic, partition) || !e.keepsLast(ctx, subject, at, partition) {
			continue
		}
		if lag := partition.End - at.Next; lag > 0 {
			behind, records = append(behind, at), records+lag
		}
	}
	e.look(ctx, "consumer", subject, "Look at the brokers' logs: a record that waits can't be read.", func(ctx context.Context) error {
		oldest, err := e.oldest(ctx, topic, behind[:min(len(behind), looked)])
		e.lag(subject, records, oldest)
		return err
	})
	if len(e.report.Findings) == before {
		e.report.add(OK, "consumer", subject, fmt.Sprintf("records behind: %d, partitions: %d", records, len(topic.Partitions)), "")
	}
}

// oldest returns the time of the oldest waiting record at some positions.
func (e *examination) oldest(ctx context.Context, topic cluster.Topic, behind []position) (oldest time.Time, err error) {
	records := nextOf(topic)
	for _, at := range behind {
		next, err := e.recordAt(ctx, at.Topic, at.Partition, at.Next, min(at.Next+records, topic.Partitions[at.Partition].End))
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
func (e *examination) inLog(subject string, at position, topic cluster.Topic, partition cluster.Partition) bool {
	where := fmt.Sprintf("partition %d stands at %d, the log is [%d, %d)", at.Partition, at.Next, partition.Start, partition.End)
	switch {
	case at.Halted != "":
		e.report.add(Fail, "consumer", subject, where+", and it is halted: "+at.Halted,
			"weir resume shows what is lost, and lets the consumer go on. Set no position by hand: offsets would come twice.")
		return false
	case at.TopicID != nil && *at.TopicID != topic.ID:
		e.report.add(Fail, "consumer", subject, where+" of another topic of that name, made since",
			"weir resume shows what is lost with the old one, and lets consumers go on in the new one. Set no position by hand: offsets would come twice.")
		return false
	case at.Next > partition.End:
		e.report.add(Fail, "consumer", subject, where+": the log has lost its end",
			"Look which broker lost data; ingest accepts nothing meanwhile. weir resume shows what is lost, and lets everything go on.")
		return false
	case at.Next < partition.Start:
		e.report.add(Fail, "consumer", subject, where+": what lies between went unread",
			"weir resume shows how much that is, and lets consumers go on without it; make retention.ms longer than any outage.")
		return false
	}
	return true
}

// keepsLast checks whether the log has the last record that a consumer
// has applied: one that lost its end and has grown since has another.
func (e *examination) keepsLast(ctx context.Context, subject string, at position, partition cluster.Partition) bool {
	if at.LastOffset == nil || at.LastSum == nil || *at.LastOffset >= at.Next || *at.LastOffset < partition.Start {
		return true
	}
	same := true
	read := e.look(ctx, "consumer", subject, "Look at the brokers' logs: a record that was applied can't be read.", func(ctx context.Context) (err error) {
		reader := &logrange.Reader{Brokers: e.brokers, Dialer: e.dialer, Topic: at.Topic}
		same, err = reader.Keeps(ctx, at.Partition, bus.Mark{Offset: *at.LastOffset, Sum: uint32(*at.LastSum)}) //nolint:gosec // it was one
		return err
	})
	if !same {
		e.report.add(Fail, "consumer", subject, fmt.Sprintf("partition %d stands at %d, and the log has another record before it than was applied: "+
			"it lost its end, and has grown since", at.Partition, at.Next),
			"Ingest accepts nothing meanwhile. weir resume shows what is lost, and lets everything go on.")
	}
	return same && read
}

// failureFactor is how many times MaxLag a record may wait before that is a failure.
const failureFactor = 15

func (e *examination) lag(subject string, behind int64, oldest time.Time) {
	waits := e.now().Sub(oldest)
	if oldest.IsZero() || waits < e.MaxLag {
		return
	}
	level := Warn
	if waits >= failureFactor*e.MaxLag {
		level = Fail
	}
	e.report.add(level, "consumer", subject, fmt.Sprintf("%d records behind, the oldest waits for %s", behind, waits.Round(time.Second)),
		"Look whether the service runs, and in its log what fails; where it only can't keep up, run more processes of it, up to one for each partition.")
}

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
func (e *examination) deferred(ctx context.Context, o opened) {
	var lanes []left
	ok := e.look(ctx, "deferred", o.name, "Look at the role's rights.", func(ctx context.Context) error {
		return o.read(ctx, func(tx pgx.Tx) error {
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
		e.lane(lane)
	}
}

// longDeferred is for how long an organization may be behind by its own load.
const longDeferred = time.Hour

func (e *examination) lane(l left) {
	subject := l.Group + " on " + l.Topic
	seen := fmt.Sprintf("%d records of %d organizations are deferred, since %s", l.Records, l.Organizations, l.Since.UTC().Format(time.RFC3339))
	switch {
	case l.Halted != "":
		e.report.add(Fail, "deferred", subject, seen+", and halted: "+l.Halted,
			"weir resume shows how much is lost, and lets the lane go on without it; make retention.ms longer.")
	case e.now().Sub(l.Since) > longDeferred:
		e.report.add(Warn, "deferred", subject, seen, "These organizations send more than their share for long: run more processes of the module, or talk to them.")
	default:
		e.report.add(OK, "deferred", subject, seen, "")
	}
}

// longBacklog is the largest normal backlog of a working relay, in
// rows: a second of a fast one.
const longBacklog = 10_000

// outboxes checks what is still to be published.
func (e *examination) outboxes(ctx context.Context, o opened) {
	for _, source := range o.outboxes {
		var waiting relay.Backlog
		ok := e.look(ctx, "outbox", source.Relay, "Look at the role's rights.", func(ctx context.Context) error {
			return o.read(ctx, func(tx pgx.Tx) (err error) {
				waiting, err = source.Backlog(ctx, tx)
				return err
			})
		})
		if ok {
			e.backlog(source.Relay, waiting)
			e.losses(source.Relay, waiting)
		}
	}
}

// lossShown is how long a loss is shown.
const lossShown = 7 * 24 * time.Hour

// losses shows what a log had lost though it was acknowledged.
func (e *examination) losses(name string, seen relay.Backlog) {
	if seen.Lost == "" || seen.Ago > lossShown {
		return
	}
	e.report.add(Warn, "outbox", name,
		fmt.Sprintf("%s ago the log lacked what the database has: %s; %d messages were published again so far",
			seen.Ago.Round(time.Second), seen.Lost, seen.Republished),
		"Nothing is to be done for these topics. Find out why: the brokers lost what they had acknowledged (a disk that lies, or WEIR_BROKER_SYNC=os and "+
			"a power cut), or the database is of an earlier hour, and weir resume was not run.")
}

func (e *examination) backlog(name string, waiting relay.Backlog) {
	seen := fmt.Sprintf("%d rows are to be published", waiting.Rows)
	switch {
	case waiting.Rows > 0 && !waiting.Held:
		e.report.add(Fail, "outbox", name, seen+", and no process does it", "Start the service; its log says what keeps it from the brokers.")
	case waiting.Rows >= longBacklog:
		e.report.add(Warn, "outbox", name, seen, "Look in the service's log whether the brokers refuse what it publishes, or are slow.")
	default:
		e.report.add(OK, "outbox", name, seen, "")
	}
}

// parked looks for records that no consumer could apply.
func (e *examination) parked(ctx context.Context, o opened) {
	var count int64
	var oldest time.Time
	ok := e.look(ctx, "parked", o.name, "Look at the role's rights.", func(ctx context.Context) error {
		return o.read(ctx, func(tx pgx.Tx) (err error) {
			count, oldest, err = parked.Count(ctx, tx)
			return err
		})
	})
	switch {
	case !ok:
	case count > 0:
		e.report.add(Warn, "parked", o.name, fmt.Sprintf("%d records could not be applied, the first at %s", count, oldest.Format(time.RFC3339)),
			"weir parked list shows why; repair the cause, then weir parked replay.")
	default:
		e.report.add(OK, "parked", o.name, "no record is parked", "")
	}
}
