package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// ArchiverConfig configures an Archiver. All of it is required.
type ArchiverConfig struct {
	Pool    *pgxpool.Pool
	Objects objects.Store
	After   time.Duration // how long after a day its texts are moved
	Clock   func() time.Time
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// An Archiver moves the texts of past days from blocks to objects: four
// fifths of the database's size. What finds and counts blocks stays. An
// object holds texts of one project and day, so that they go together. One
// replica works at a time.
type Archiver struct {
	ArchiverConfig
	blocks, bytes prometheus.Counter
	done          map[day]time.Time // when to look at a day again; bounded by the days that are kept
}

// NewArchiver makes an Archiver.
func NewArchiver(config ArchiverConfig) *Archiver {
	make := promauto.With(config.Metrics)
	return &Archiver{
		ArchiverConfig: config, done: map[day]time.Time{},
		blocks: make.NewCounter(prometheus.CounterOpts{Name: "weir_ingest_archived_blocks_total", Help: "Blocks whose texts were moved to objects."}),
		bytes:  make.NewCounter(prometheus.CounterOpts{Name: "weir_ingest_archived_bytes_total", Help: "Compressed texts that were moved to objects."}),
	}
}

const (
	archiveInterval = time.Minute
	lookAgain       = 6 * time.Hour // for blocks of a past day that were kept late
	objectBytes     = 32 << 20      // of an object, and one block beyond it
	uploadTimeout   = time.Minute
	maxInObject     = 1024 // blocks
)

// Run archives until ctx ends. It logs a failure and retries.
func (a *Archiver) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, archiveInterval, a.RunOnce, lifecycle.Warn(a.Logger, "cannot move texts to the archive"))
}

// RunOnce archives all that is due. A day that fails does not stop another.
func (a *Archiver) RunOnce(ctx context.Context) error {
	var days []day
	err := pg.ReadAsSystem(ctx, a.Pool, func(tx pgx.Tx) (err error) {
		days, err = loadDays(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot list days: %w", err)
	}
	var failed []error
	for _, d := range days {
		now := a.Clock()
		if d.ends().Add(a.After).After(now) || now.Before(a.done[d]) {
			continue
		}
		err := a.archive(ctx, d)
		if errors.Is(err, errNotAlone) {
			break
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("of %s: %w", d.partition(), err))
			continue
		}
		a.done[d] = now.Add(lookAgain)
	}
	return errors.Join(failed...)
}

// errNotAlone means that another replica archives.
var errNotAlone = errors.New("another process archives")

// archive moves the texts of a day.
func (a *Archiver) archive(ctx context.Context, d day) error {
	projects, err := a.projects(ctx, d)
	if err != nil {
		return err
	}
	for _, of := range projects {
		for more := true; more; {
			if more, err = a.moveSome(ctx, of); err != nil {
				return err
			}
		}
	}
	return nil
}

// unarchived is the condition of blocks whose texts are to be moved. Small ones wait to be merged.
var unarchived = fmt.Sprintf(`retention = $1 AND received_at >= $2 AND received_at < $3 AND object IS NULL AND text_bytes >= %d`, ingest.SmallBlockBytes)

// projects lists the projects with blocks of a day to archive.
func (a *Archiver) projects(ctx context.Context, d day) (all []projectDay, err error) {
	err = pg.ReadAsSystem(ctx, a.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT DISTINCT organization, project FROM blocks WHERE `+unarchived,
			int16(d.retention), d.begins, d.ends()) //nolint:gosec // bounded by the contract
		if err != nil {
			return err
		}
		of := projectDay{day: d}
		_, err = pgx.ForEachRow(rows, []any{&of.organization, &of.project}, func() error {
			all = append(all, of)
			return nil
		})
		return err
	})
	return all, err
}

// moveSome moves the texts of some blocks into one object, which is noted
// before: what a crash leaves of it is deleted.
func (a *Archiver) moveSome(ctx context.Context, of projectDay) (more bool, err error) {
	object := uuid.NewString()
	err = pg.InTxAsSystem(ctx, a.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO objects (organization, project, retention, day, object, created_at) VALUES ($1, $2, $3, $4::date, $5::uuid, $6)`,
			of.args(object, a.Clock())...)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot note an object: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	m := moving{of: of, object: object}
	err = pg.InTxAsSystem(ctx, a.Pool, func(tx pgx.Tx) error { return m.run(ctx, tx, a.Objects) })
	if err != nil {
		return false, fmt.Errorf("cannot move texts to object %s: %w", object, err)
	}
	a.blocks.Add(float64(len(m.ids)))
	a.bytes.Add(float64(len(m.body)))
	return m.more, nil
}

// moving is the transaction of one object.
type moving struct {
	of       projectDay
	object   string
	received []time.Time
	ids      []string
	at       []int64 // in the body
	sizes    []int32
	body     []byte
	more     bool // blocks may be left
}

func (m *moving) run(ctx context.Context, tx pgx.Tx, store objects.Store) error {
	var alone bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtext(current_schema() || ' archive'))`).Scan(&alone); err != nil {
		return err
	}
	if !alone {
		return errNotAlone
	}
	tag, err := tx.Exec(ctx, `SELECT FROM objects WHERE organization = $1 AND object = $2::uuid FOR UPDATE`, m.of.organization, m.object)
	if err != nil || tag.RowsAffected() == 0 { // the project was erased
		return err
	}
	if err := m.take(ctx, tx); err != nil || len(m.ids) == 0 {
		return err
	}
	if err := store.Put(ctx, m.object, m.body); err != nil {
		return err
	}
	return m.commit(ctx, tx)
}

// take reads texts until they are enough for an object.
func (m *moving) take(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT received_at, block::text, texts FROM (
			SELECT *, sum(octet_length(texts)) OVER (ORDER BY received_at, block) - octet_length(texts) AS before FROM (
				SELECT received_at, block, texts FROM blocks WHERE `+unarchived+` AND organization = $4 AND project = $5
				ORDER BY received_at, block LIMIT $6) AS few) AS b
		WHERE before < $7 ORDER BY received_at, block`, append(m.of.queryArgs(), maxInObject, objectBytes)...)
	if err != nil {
		return err
	}
	var received time.Time
	var id string
	var texts []byte
	_, err = pgx.ForEachRow(rows, []any{&received, &id, &texts}, func() error {
		m.received, m.ids = append(m.received, received), append(m.ids, id)
		m.at, m.sizes = append(m.at, int64(len(m.body))), append(m.sizes, int32(len(texts))) //nolint:gosec // bounded by the size of a field
		m.body = append(m.body, texts...)
		return nil
	})
	m.more = len(m.ids) == maxInObject || len(m.body) >= objectBytes
	return err
}

// commit has the blocks name the object.
func (m *moving) commit(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE blocks AS b SET texts = '', object = $6::uuid, object_at = t.at, object_bytes = t.bytes
		FROM unnest($7::timestamptz[], $8::uuid[], $9::bigint[], $10::int[]) AS t (received_at, block, at, bytes)
		WHERE b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3 AND b.organization = $4 AND b.project = $5
			AND b.received_at = t.received_at AND b.block = t.block`, append(m.of.queryArgs(), m.object, m.received, m.ids, m.at, m.sizes)...)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE objects SET used = true, bytes = $3 WHERE organization = $1 AND object = $2::uuid`, m.of.organization, m.object, len(m.body))
	return err
}
