package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/endpoint"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logend"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// Config holds the settings of an installation.
type Config struct {
	backup.Source `embed:""`

	LogPartitions int           `help:"How many partitions weir.logs.v1 should have." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 should keep records. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`

	Choice `embed:""`

	Yes bool `help:"Do it. Without it the command only shows what it would do."`
}

// An installation is its databases and brokers.
type installation struct {
	Config

	pools   map[string]*pgxpool.Pool
	seen    cluster.Cluster
	brokers []string
	dialer  *bus.Dialer
	alone   bool           // the data directory is locked: no service runs
	ends    []func() error // of what was started, in order
}

// Run compares positions with logs and shows the outcome. With Yes it
// repairs and moves what must be, and makes the modules publish their
// state again. An interrupted run can be repeated.
func Run(ctx context.Context, config Config, out io.Writer) (err error) {
	i := &installation{Config: config, pools: map[string]*pgxpool.Pool{}}
	defer func() { err = errors.Join(err, i.close()) }()
	if err := i.openEmbedded(ctx, out); err != nil {
		return err
	}
	steps, err := i.look(ctx)
	if err != nil {
		return err
	}
	if err := table(out, steps); err != nil {
		return err
	}
	if err := i.explainLost(ctx, out, steps); err != nil {
		return err
	}
	orphans, err := i.findOrphans(ctx)
	if err != nil {
		return err
	}
	if err := orphans.show(out); err != nil {
		return err
	}
	if !config.Yes {
		if _, err := fmt.Fprintln(out, "\nNothing was changed. With the services stopped, weir resume --yes does it."); err != nil {
			return err
		}
		return orphans.left()
	}
	if err := i.do(ctx, out, steps, orphans); err != nil {
		return err
	}
	return orphans.left()
}

// do carries the steps out, and what is chosen about orphans: before keys
// of which tenants does not know are taken back.
func (i *installation) do(ctx context.Context, out io.Writer, steps []Step, orphans *orphans) error {
	if err := i.refuseOthers(ctx, steps); err != nil {
		return err
	}
	for _, step := range steps {
		if err := i.move(ctx, &step); err != nil {
			return err
		}
		if err := i.settle(ctx, step); err != nil {
			return fmt.Errorf("cannot set the positions of partition %d of %s: %w", step.Partition, step.Topic, err)
		}
	}
	if err := orphans.decide(ctx, out); err != nil {
		return err
	}
	if err := i.settleCredentials(ctx, out); err != nil {
		return err
	}
	if err := i.republish(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nDone: start the services, or weir run. Credentials and accounts are published again as soon as tenants and ledger run.")
	return err
}

func (i *installation) close() (err error) {
	for _, pool := range i.pools {
		pool.Close()
	}
	for _, end := range slices.Backward(i.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// look reads positions and logs, and decides.
func (i *installation) look(ctx context.Context) ([]Step, error) {
	var positions []Position
	for _, module := range endpoint.Modules {
		found, err := i.positions(ctx, module)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", module, err)
		}
		positions = append(positions, found...)
	}
	var err error
	if i.brokers, i.dialer, err = i.Cluster(); err != nil {
		return nil, err
	}
	wanted := contract.Topics(i.LogPartitions, i.LogRetention)
	var names []string
	for _, topic := range wanted {
		names = append(names, topic.Name)
	}
	seen, err := cluster.Look(ctx, i.brokers, i.dialer, names, []string{"cleanup.policy"})
	if err != nil {
		return nil, err
	}
	i.seen = seen
	filled, err := i.filled(ctx, wanted, seen, positions)
	if err != nil {
		return nil, err
	}
	for at := range positions {
		if err := i.compare(ctx, &positions[at], seen); err != nil {
			return nil, err
		}
	}
	return plans(wanted, seen, filled, positions)
}

// filled finds the logs that an interrupted move has left.
func (i *installation) filled(ctx context.Context, wanted []contract.Topic, seen cluster.Cluster, positions []Position) (map[place]bool, error) {
	found := map[place]bool{}
	for _, topic := range wanted {
		if topic.Config["cleanup.policy"] == "compact" {
			continue
		}
		mover := &logend.Mover{Brokers: i.brokers, Dialer: i.dialer, Topic: topic.Name}
		for p, log := range seen.Topics[topic.Name].Partitions {
			if !log.Led || log.Start == log.End || !slices.ContainsFunc(positions, func(at Position) bool { return at.Topic == topic.Name && at.Partition == p }) {
				continue
			}
			filled, err := mover.Filled(ctx, p, log.End)
			if err != nil {
				return nil, err
			}
			found[place{topic.Name, p}] = filled
		}
	}
	return found, nil
}

// writtenBefore is how much earlier than the last record applied a
// record may seem that was written later: clocks of publishers differ,
// and brokers refuse what is further ahead. What is read twice for it
// takes effect once.
const writtenBefore = time.Hour

// compare finds out whether the log of a position has grown again after
// it lost its end, and since where. Inboxes tell what was applied before
// for a week.
func (i *installation) compare(ctx context.Context, at *Position, seen cluster.Cluster) error {
	topic := seen.Topics[at.Topic]
	if at.Last == nil || isOther(*at, topic.ID) || at.Partition >= len(topic.Partitions) {
		return nil
	}
	log := topic.Partitions[at.Partition]
	if !log.Led || at.Last.Offset >= at.Next || at.Last.Offset < log.Start || at.Last.Offset >= log.End {
		return nil
	}
	reader := &logrange.Reader{Brokers: i.brokers, Dialer: i.dialer, Topic: at.Topic}
	kept, err := reader.Keeps(ctx, at.Partition, *at.Last)
	if at.Differs = !kept; err != nil || kept {
		return err
	}
	since := at.Last.Time.Add(-writtenBefore)
	if at.Topic == contract.TopicLogs && since.Before(time.Now().Add(-inbox.Retention)) {
		return fmt.Errorf("%w: %s at %d, with a last record of %s, which is longer ago than inboxes remember", errHalted, at.Group, at.Next,
			at.Last.Time.UTC().Format(time.RFC3339))
	}
	at.Since, err = reader.Since(ctx, at.Partition, since, log.End)
	return err
}

// refuseOthers fails if a process of the services still is in a group:
// ingest publishes without a lease, and is found only by this.
func (i *installation) refuseOthers(ctx context.Context, steps []Step) error {
	groups := map[string]bool{}
	for _, step := range steps {
		for _, o := range step.Outcomes {
			groups[o.Group] = true
		}
	}
	members, err := cluster.Members(ctx, i.brokers, i.dialer, slices.Sorted(maps.Keys(groups)))
	if err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(members)) {
		if n := members[group]; n > 0 {
			return fmt.Errorf("%w (%d in the group %s; the brokers remember one that was killed for up to a minute)", errConsuming, n, group)
		}
	}
	return nil
}

var errConsuming = errors.New("processes consume: stop all services first")

var errRunning = errors.New("a process of it publishes: stop all services first (a killed one is remembered for seconds, also by a recovered database)")

// positions opens a module's database, as the role that owns its
// schema, and reads its positions.
func (i *installation) positions(ctx context.Context, module string) (found []Position, err error) {
	database, err := endpoint.MigratingDatabaseURL(module, i.DataDir)
	if err != nil {
		return nil, err
	}
	schema := endpoint.Schemas[module]
	pool, err := pg.OpenCurrent(ctx, database.Reveal(), schema.Name, schema.Migrations...)
	if err != nil {
		return nil, err
	}
	i.pools[module] = pool
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		var runs bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM bus_relays WHERE expires_at > clock_timestamp())`).Scan(&runs); err != nil {
			return err
		}
		if runs && i.Yes && !i.alone {
			return errRunning
		}
		found, err = read(ctx, tx, module)
		return err
	})
	return found, err
}

// read reads positions, with their deferred records.
func read(ctx context.Context, tx pgx.Tx, module string) ([]Position, error) {
	rows, err := tx.Query(ctx, `SELECT group_name, topic, partition, next, topic_id, coalesce(halted, ''), last_offset, last_sum, last_time
		FROM bus_positions ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Position, error) { return scanPosition(row, module) })
	if err != nil {
		return nil, err
	}
	for i, at := range found {
		rows, err := tx.Query(ctx, `SELECT next, last, records, halted IS NOT NULL FROM bus_deferred
			WHERE group_name = $1 AND topic = $2 AND partition = $3 AND topic_id = $4`, at.Group, at.Topic, at.Partition, at.TopicID)
		if err != nil {
			return nil, err
		}
		if found[i].Deferred, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Deferred]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func scanPosition(row pgx.CollectableRow, module string) (at Position, err error) {
	at.Module = module
	var offset, sum *int64
	var last *time.Time
	err = row.Scan(&at.Group, &at.Topic, &at.Partition, &at.Next, &at.TopicID, &at.Halted, &offset, &sum, &last)
	if offset != nil && sum != nil && last != nil {
		at.Last = &bus.Mark{Offset: *offset, Time: *last, Sum: uint32(*sum)} //nolint:gosec // it was one
	}
	return at, err
}

// move moves or fills the log of a partition, if needed.
func (i *installation) move(ctx context.Context, step *Step) error {
	mover := &logend.Mover{Brokers: i.brokers, Dialer: i.dialer, Topic: step.Topic}
	if step.Fill {
		return mover.Fill(ctx, step.Partition, step.Log.End, step.To)
	}
	if !step.Move {
		return nil
	}
	done, err := mover.Move(ctx, step.Partition, step.Log.End, step.To)
	step.To = cmp.Or(done.To, step.To)
	return err
}

// settle sets the positions of a partition: the higher epoch takes it
// from a process that still runs.
func (i *installation) settle(ctx context.Context, step Step) error {
	for _, o := range step.Outcomes {
		if !o.Moved {
			continue
		}
		to := o.To
		if step.Move {
			to = step.To
		}
		err := pg.InTxAsSystem(ctx, i.pools[o.Module], func(tx pgx.Tx) error { return set(ctx, tx, o, step, to) })
		if err != nil {
			return err
		}
	}
	return nil
}

// set writes a position, and lets lanes go on that were stopped: what
// has left the log is behind them.
func set(ctx context.Context, tx pgx.Tx, o Outcome, step Step, to int64) error {
	var batch pgx.Batch
	const position = ` WHERE group_name = $1 AND topic = $2 AND partition = $3`
	batch.Queue(`UPDATE bus_positions SET next = $4, topic_id = $5, halted = NULL, epoch = epoch + 1, updated_at = now()`+position,
		o.Group, o.Topic, o.Partition, to, step.ID)
	batch.Queue(`DELETE FROM bus_deferred`+position+` AND halted IS NOT NULL AND last < $4`, o.Group, o.Topic, o.Partition, step.Log.Start)
	batch.Queue(`UPDATE bus_deferred SET next = greatest(next, $4), halted = NULL`+position+` AND halted IS NOT NULL`,
		o.Group, o.Topic, o.Partition, step.Log.Start)
	err := tx.SendBatch(ctx, &batch).Close()
	if err == nil && o.Group == contract.GroupLedger && to > o.Next {
		err = ledger.AcceptLost(ctx, tx, o.Partition, to)
	}
	return err
}

// republish makes the modules publish the state of compacted topics.
func (i *installation) republish(ctx context.Context) error {
	for module, republish := range backup.Republishers {
		err := pg.InTxAsSystem(ctx, i.pools[module], func(tx pgx.Tx) error { return republish(ctx, tx) })
		if err != nil {
			return fmt.Errorf("%s: cannot have its state published again: %w", module, err)
		}
	}
	return nil
}

// settleCredentials makes the log and a database of an earlier hour agree:
// what was revoked since stays so, and credentials made since are withdrawn,
// as nobody could revoke them.
func (i *installation) settleCredentials(ctx context.Context, out io.Writer) error {
	return pg.InTxAsSystem(ctx, i.pools["tenants"], func(tx pgx.Tx) error {
		revoked, forgotten, err := tenants.SettleCredentials(ctx, i.pools["tenants"], tx, i.brokers, i.dialer, time.Now())
		if err != nil {
			return fmt.Errorf("tenants: cannot settle credentials with the log: %w", err)
		}
		if len(revoked) > 0 {
			if _, err := fmt.Fprintf(out, "\nRevoked again, as the log has it: %s.\n", strings.Join(revoked, ", ")); err != nil {
				return err
			}
		}
		if forgotten > 0 {
			_, err = fmt.Fprintf(out, "\nTaken back: %d credentials (keys, tokens, sessions) of which the database of tenants does not know this state.\n", forgotten)
		}
		return err
	})
}

// A consumer is a group on a topic, with all its partitions.
type consumer struct {
	group, topic      string
	partitions, moved int
	again, lost       int64
}

// table shows the outcome of each consumer, and then the losses in words.
func table(out io.Writer, steps []Step) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CONSUMER\tTOPIC\tPARTITIONS\tMOVED\tTO READ\tLOST")
	for _, c := range consumers(steps) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\n", c.group, c.topic, c.partitions, c.moved, c.again, c.lost)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return explain(out, steps)
}

func consumers(steps []Step) (all []*consumer) {
	of := map[[2]string]*consumer{}
	for _, step := range steps {
		for _, o := range step.Outcomes {
			c := of[[2]string{o.Group, o.Topic}]
			if c == nil {
				c = &consumer{group: o.Group, topic: o.Topic}
				of[[2]string{o.Group, o.Topic}], all = c, append(all, c)
			}
			c.partitions, c.again, c.lost = c.partitions+1, c.again+o.Again, c.lost+o.Lost
			if o.Moved {
				c.moved++
			}
		}
	}
	return all
}

// explain says which offsets are in no log, what nobody can count, and
// where logs continue.
func explain(out io.Writer, steps []Step) error {
	var text strings.Builder
	changed := false
	for _, step := range steps {
		changed = changed || step.Changed() || slices.ContainsFunc(step.Outcomes, func(o Outcome) bool { return o.Lost > 0 })
		step.explain(&text)
	}
	if recreated := recreatedTopics(steps); len(recreated) > 0 {
		fmt.Fprintf(&text, "recreated: %s. Records of their old logs that no consumer of these databases has applied are lost too, and can't be counted.\n",
			strings.Join(recreated, ", "))
	}
	if !changed {
		text.WriteString("Every position is in its log: consumers go on where they were, and read again what they lack. Each record still takes effect once.\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// explain says where the log of one partition continues, and what it lacks.
func (s Step) explain(text io.Writer) {
	if s.Move {
		fmt.Fprintf(text, "moves: partition %d of %s: its log [%d, %d) begins at %d from then on, with what it has now\n",
			s.Partition, s.Topic, s.Log.Start, s.Log.End, s.To)
	}
	if s.Fill {
		fmt.Fprintf(text, "fills: partition %d of %s: its log [%d, %d) has lost its end, and goes on at %d\n",
			s.Partition, s.Topic, s.Log.Start, s.Log.End, s.To)
	}
	for _, o := range s.Outcomes {
		if o.Differs && !s.Compacted {
			fmt.Fprintf(text, "again: partition %d of %s has other records than %s has applied, and is read again from offset %d on\n",
				s.Partition, s.Topic, o.Group, o.To)
		}
		if o.Lost > 0 {
			fmt.Fprintf(text, "lost: %s never applied %d records of partition %d of %s, from offset %d on: no log has them\n",
				o.Group, o.Lost, s.Partition, s.Topic, o.Next)
		}
	}
}

// recreatedTopics are the topics that are others than those that were applied, sorted.
// What is compacted is published again.
func recreatedTopics(steps []Step) []string {
	topics := map[string]bool{}
	for _, step := range steps {
		for _, o := range step.Outcomes {
			if isOther(o.Position, step.ID) && !step.Compacted {
				topics[step.Topic] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(topics))
}
