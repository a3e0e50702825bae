package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/endpoint"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logend"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// Config holds the settings of an installation.
type Config struct {
	backup.Source `embed:""`

	LogPartitions int           `help:"How many partitions weir.logs.v1 should have." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 should keep records. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`

	Yes bool `help:"Do it. Without it the command only shows what it would do."`
}

// An installation is its databases and brokers.
type installation struct {
	Config

	pools   map[string]*pgxpool.Pool
	brokers []string
	dialer  *bus.Dialer
}

// Run compares positions with logs and shows the outcome. With Yes it
// moves what must be moved, and makes the modules publish their state
// again. An interrupted run can be repeated.
func Run(ctx context.Context, config Config, out io.Writer) error {
	i := &installation{Config: config, pools: map[string]*pgxpool.Pool{}}
	defer i.close()
	steps, err := i.look(ctx)
	if err != nil {
		return err
	}
	if err := table(out, steps); err != nil {
		return err
	}
	if !config.Yes {
		_, err := fmt.Fprintln(out, "\nNothing was changed. With the services stopped, weir resume --yes does it.")
		return err
	}
	if err := i.alone(ctx, steps); err != nil {
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
	if err := i.forgetUnknown(ctx, out); err != nil {
		return err
	}
	if err := i.republish(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "\nDone: start the services. Credentials and accounts are published again as soon as tenants and ledger run.")
	return err
}

func (i *installation) close() {
	for _, pool := range i.pools {
		pool.Close()
	}
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
	filled, err := i.filled(ctx, wanted, seen, positions)
	if err != nil {
		return nil, err
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

// alone fails if a process of the services still is in a group: ingest
// publishes without a lease, and is found only by this.
func (i *installation) alone(ctx context.Context, steps []Step) error {
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

var errRunning = errors.New("a process of it publishes: stop all services first")

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
		if runs && i.Yes {
			return errRunning
		}
		found, err = read(ctx, tx, module)
		return err
	})
	return found, err
}

// read reads positions, with their deferred records.
func read(ctx context.Context, tx pgx.Tx, module string) ([]Position, error) {
	rows, err := tx.Query(ctx, `SELECT $1, group_name, topic, partition, next, topic_id, coalesce(halted, '') FROM bus_positions ORDER BY 2, 3, 4`, module)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Position])
	if err != nil {
		return nil, err
	}
	for i, at := range found {
		rows, err := tx.Query(ctx, `SELECT next, last, records FROM bus_deferred WHERE group_name = $1 AND topic = $2 AND partition = $3 AND topic_id = $4`,
			at.Group, at.Topic, at.Partition, at.TopicID)
		if err != nil {
			return nil, err
		}
		if found[i].Deferred, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Deferred]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// move moves the log of a partition, if needed.
func (i *installation) move(ctx context.Context, step *Step) error {
	if !step.Move {
		return nil
	}
	mover := &logend.Mover{Brokers: i.brokers, Dialer: i.dialer, Topic: step.Topic, Drop: step.Drop}
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
		err := pg.InTxAsSystem(ctx, i.pools[o.Module], func(tx pgx.Tx) error { return set(ctx, tx, o, step.ID, to) })
		if err != nil {
			return err
		}
	}
	return nil
}

func set(ctx context.Context, tx pgx.Tx, o Outcome, id [16]byte, to int64) error {
	_, err := tx.Exec(ctx, `UPDATE bus_positions SET next = $4, topic_id = $5, halted = NULL, epoch = epoch + 1, updated_at = now()
		WHERE group_name = $1 AND topic = $2 AND partition = $3`, o.Group, o.Topic, o.Partition, to, id)
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
