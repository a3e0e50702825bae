package erasure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Config configures an Eraser. Interval and Batch are optional.
type Config struct {
	Module  string  // as in contract.ErasingModules
	Tables  []Table // in the order of erasure
	Pool    *pgxpool.Pool
	Bus     *publisher.Publisher
	Clock   func() time.Time
	Metrics prometheus.Registerer
	Logger  *slog.Logger

	Interval time.Duration // between looks for deletions; default 1 s
	Batch    int           // rows of one transaction; default 5,000
}

// An Eraser erases deletions, one transaction of each in turn. Replicas
// continue for each other.
//
// It repeats its pass over the tables until one finds nothing, because
// a row may move within a table meanwhile.
type Eraser struct {
	Config
	metrics metrics
}

// New returns an Eraser.
func New(config Config) *Eraser {
	config.Interval, config.Batch = cmp.Or(config.Interval, 5*time.Second), cmp.Or(config.Batch, 5000)
	return &Eraser{config, newMetrics(config.Metrics)}
}

// Run erases until ctx ends. A failure is logged and retried.
func (e *Eraser) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, e.Interval, e.RunOnce, lifecycle.Warn(e.Logger, "cannot erase what is deleted"))
}

// RunOnce erases and publishes all that it can, also deletions that
// begin meanwhile. A large or failing deletion delays no other.
func (e *Eraser) RunOnce(ctx context.Context) error {
	run := run{eraser: e, ended: map[Deletion]bool{}}
	for more := true; more; {
		open, err := e.open(ctx)
		if err != nil {
			return errors.Join(append(run.failed, err)...)
		}
		more = run.round(ctx, open)
	}
	return errors.Join(run.failed...)
}

// A run is the progress of one RunOnce.
type run struct {
	eraser *Eraser
	ended  map[Deletion]bool // erased, failed, or another replica's: not retried; bounded by open deletions
	failed []error
}

// round makes a step of each deletion, and reports whether any goes on.
// A waiting one is asked again in the next round, but starts none.
func (r *run) round(ctx context.Context, open []Deletion) (more bool) {
	for _, of := range open {
		if r.ended[of] {
			continue
		}
		goesOn, err := r.eraser.turn(ctx, of)
		if errors.Is(err, ErrNotYet) {
			continue
		}
		if err != nil {
			r.failed = append(r.failed, fmt.Errorf("%v: %w", of, err))
		}
		r.ended[of] = !goesOn
		more = more || goesOn
	}
	return more
}

// open lists the deletions not erased or not published, oldest first.
func (e *Eraser) open(ctx context.Context) (open []Deletion, err error) {
	overdue := 0
	err = e.asSystem(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT organization, project, gone_by FROM erasures WHERE published_at IS NULL ORDER BY begun_at, organization, project`)
		if err != nil {
			return err
		}
		var of Deletion
		var goneBy time.Time
		_, err = pgx.ForEachRow(rows, []any{&of.Organization, &of.Project, &goneBy}, func() error {
			open = append(open, of)
			if goneBy.Before(e.Clock()) {
				overdue++
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read what is to be erased: %w", err)
	}
	e.metrics.open.Set(float64(len(open)))
	e.metrics.overdue.Set(float64(overdue))
	return open, nil
}

// turn makes a step of a deletion, or publishes after the last.
func (e *Eraser) turn(ctx context.Context, of Deletion) (more bool, err error) {
	more, err = e.step(ctx, of)
	switch {
	case pg.IsReferenced(err):
		return false, errors.Join(err, e.again(ctx, of))
	case err != nil, more:
		return more, err
	}
	return false, e.publish(ctx, of)
}

// again restarts the pass: a row can't be deleted because another one
// came into a table that the pass has left.
func (e *Eraser) again(ctx context.Context, of Deletion) error {
	return e.asSystem(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE erasures SET step = 0, place = '', found = true WHERE organization = $1 AND project = $2 AND erased_at IS NULL`,
			of.Organization, of.Project)
		return err
	})
}

// progress is a deletion's place in the tables.
type progress struct {
	step  int
	place string
	found bool
}

// step is one transaction. more is false if nothing is left, or another
// replica works on it.
func (e *Eraser) step(ctx context.Context, of Deletion) (more bool, err error) {
	var table string
	var removed int64
	err = e.asSystem(ctx, func(tx pgx.Tx) error {
		var at progress
		err := tx.QueryRow(ctx, `SELECT step, place, found FROM erasures WHERE organization = $1 AND project = $2 AND erased_at IS NULL
			FOR UPDATE SKIP LOCKED`, of.Organization, of.Project).Scan(&at.step, &at.place, &at.found)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if more = true; at.step < len(e.Tables) {
			table = e.Tables[at.step].Name
			if removed, at.place, err = e.Tables[at.step].Erase(ctx, tx, of, at.place, e.Batch); err != nil {
				return fmt.Errorf("cannot erase %s: %w", table, err)
			}
		}
		return e.advance(ctx, tx, of, at, removed)
	})
	if err != nil {
		return false, err
	}
	e.metrics.erased(table, removed)
	return more, nil
}

// advance stores the progress after a step, and the end of the erasure
// after a pass that found nothing.
func (e *Eraser) advance(ctx context.Context, tx pgx.Tx, of Deletion, at progress, removed int64) (err error) {
	switch {
	case at.step < len(e.Tables):
		name := e.Tables[at.step].Name
		if at.place == "" {
			at.step++
		}
		_, err = tx.Exec(ctx, `UPDATE erasures SET step = $3, place = $4, found = found OR $6 > 0,
			removed = removed || jsonb_build_object($5::text, coalesce((removed->>$5::text)::bigint, 0) + $6::bigint)
			WHERE organization = $1 AND project = $2`, of.Organization, of.Project, at.step, at.place, name, removed)
	case at.found:
		_, err = tx.Exec(ctx, `UPDATE erasures SET step = 0, found = false WHERE organization = $1 AND project = $2`, of.Organization, of.Project)
	default:
		_, err = tx.Exec(ctx, `UPDATE erasures SET erased_at = $3 WHERE organization = $1 AND project = $2`, of.Organization, of.Project, e.Clock().UTC())
	}
	return err
}

func (e *Eraser) asSystem(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pg.InTxAsSystem(ctx, e.Pool, fn)
}

// publish publishes what was removed once all is erased, and records
// that. After a crash in between it publishes again.
func (e *Eraser) publish(ctx context.Context, of Deletion) error {
	erased := contract.Erased{Organization: of.Organization, Project: of.Project, Module: e.Module}
	err := e.asSystem(ctx, func(tx pgx.Tx) error {
		var removed []byte
		err := tx.QueryRow(ctx, `SELECT removed, erased_at FROM erasures
			WHERE organization = $1 AND project = $2 AND erased_at IS NOT NULL AND published_at IS NULL`, of.Organization, of.Project).
			Scan(&removed, &erased.ErasedAt)
		if err != nil {
			return err
		}
		return json.Unmarshal(removed, &erased.Removed)
	})
	if errors.Is(err, pgx.ErrNoRows) { // another replica works on it
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read what was removed: %w", err)
	}
	if err := e.send(ctx, erased); err != nil {
		return err
	}
	return e.asSystem(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE erasures SET published_at = $3 WHERE organization = $1 AND project = $2`, of.Organization, of.Project, e.Clock().UTC())
		return err
	})
}

func (e *Eraser) send(ctx context.Context, erased contract.Erased) error {
	erased.ErasedAt = erased.ErasedAt.UTC()
	value, err := json.Marshal(erased)
	if err != nil {
		return fmt.Errorf("cannot encode what was removed: %w", err)
	}
	key := contract.HolderKey(erased.Organization, erased.Project) + "/" + e.Module
	m := message.NewMessage(key, value)
	m.Metadata = contract.Attributes{
		ID: key, Type: contract.TypeErased, Source: "weir/" + e.Module, Time: erased.ErasedAt, Organization: erased.Organization,
	}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err := e.Bus.PublishContext(ctx, contract.TopicErasures, m); err != nil {
		return fmt.Errorf("cannot publish what was removed: %w", err)
	}
	return nil
}

// A Table is a module's data of organizations.
type Table struct {
	Name string // as in contract.Erased

	// Erase deletes about limit rows of a deletion, from a place on: ""
	// at first, then next. An empty next means that nothing is left.
	// ErrNotYet rolls back and retries later.
	Erase func(ctx context.Context, tx pgx.Tx, of Deletion, place string, limit int) (removed int64, next string, err error)
}

// ErrNotYet means that something else must happen first.
var ErrNotYet = errors.New("it can't be erased yet")

// OfProject is the condition for tables with a column project: $1 is
// the organization, $2 the project or ”.
const OfProject = `organization = $1 AND ($2 = '' OR project = $2)`

// OfOrganization is the condition for tables without data of single projects.
const OfOrganization = `organization = $1 AND $2 = ''`

// again is the place of a table that is read from its start each time.
const again = "again"

// Rows erases the rows of a table that match a condition on $1 and $2.
func Rows(name, condition string) Table {
	return Table{Name: name, Erase: func(ctx context.Context, tx pgx.Tx, of Deletion, _ string, limit int) (int64, string, error) {
		removed, err := deleteRows(ctx, tx, name, condition, of, limit)
		if err != nil || removed < int64(limit) {
			return removed, "", err
		}
		return removed, again, nil
	}}
}

func deleteRows(ctx context.Context, tx pgx.Tx, name, condition string, of Deletion, limit int) (int64, error) {
	table := pgx.Identifier{name}.Sanitize()
	tag, err := tx.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY(ARRAY(SELECT ctid FROM %[1]s WHERE %[2]s LIMIT $3))`, table, condition),
		of.Organization, of.Project, limit)
	if err != nil {
		return 0, fmt.Errorf("cannot delete from %s: %w", table, err)
	}
	return tag.RowsAffected(), nil
}

// Parked empties parked records: they are as the tenant sent them, even
// with headers that are no text. Their places stay until they are old.
func Parked() Table {
	return Table{Name: "bus_parked", Erase: func(ctx context.Context, tx pgx.Tx, of Deletion, _ string, limit int) (int64, string, error) {
		emptied, err := parked.Erase(ctx, tx, of.Organization, of.Project, limit)
		if err != nil || emptied < int64(limit) {
			return emptied, "", err
		}
		return emptied, again, nil
	}}
}

// partitionBatch limits the locks of a transaction: each partition
// takes one, and one for each of its indexes.
const partitionBatch = 16

// after begins the place in a partitioned table; the name of the last
// erased partition follows.
const after = "after "

// Partitions is Rows for a partitioned table. It takes few partitions
// at a time, and locks no others.
func Partitions(name, condition string) Table {
	return Table{Name: name, Erase: func(ctx context.Context, tx pgx.Tx, of Deletion, place string, limit int) (removed int64, next string, err error) {
		last := strings.TrimPrefix(place, after)
		partitions, err := partitionsBehind(ctx, tx, name, last)
		if err != nil || len(partitions) == 0 {
			return 0, "", err
		}
		for _, partition := range partitions {
			n, err := deleteRows(ctx, tx, partition, condition, of, limit)
			if removed += n; err != nil || n == int64(limit) {
				return removed, after + last, err
			}
			last = partition
		}
		return removed, after + last, nil
	}}
}

func partitionsBehind(ctx context.Context, tx pgx.Tx, table, last string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT c.relname::text FROM pg_partition_tree($1::text::regclass) t JOIN pg_class c ON c.oid = t.relid
		WHERE t.isleaf AND c.relname::text COLLATE "C" > $2 ORDER BY c.relname::text COLLATE "C" LIMIT $3`,
		pgx.Identifier{table}.Sanitize(), last, partitionBatch)
	if err != nil {
		return nil, fmt.Errorf("cannot list the partitions of %s: %w", table, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

type metrics struct {
	removed       *prometheus.CounterVec
	open, overdue prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	metric := promauto.With(registerer)
	return metrics{
		removed: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_erased_total", Help: "Rows that were removed because their organization or project was deleted.",
		}, []string{"table"}),
		open: metric.NewGauge(prometheus.GaugeOpts{
			Name: "weir_erasures_open", Help: "Deleted organizations and projects that are not erased here yet.",
		}),
		overdue: metric.NewGauge(prometheus.GaugeOpts{
			Name: "weir_erasures_overdue", Help: "Deleted organizations and projects that should have been erased here by now.",
		}),
	}
}

func (m metrics) erased(table string, removed int64) {
	if removed > 0 {
		m.removed.WithLabelValues(table).Add(float64(removed))
	}
}
