package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/history"
	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/ingest/internal/searches"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// A logStore keeps accepted entries and finds them. Several share the work.
type logStore struct {
	config   Config
	base     *service.Base
	migrated bool // the schema is up to date

	store    *postgres.Store
	merger   *postgres.Merger
	archive  objects.Store // nil: texts stay in the database
	move     func(context.Context) error
	searches *searches.Searches
	consumer *consumer.Consumer
	deleted  *consumer.Consumer // of organizations, projects and members
	relay    *relay.Relay       // of what is told of alerts, and of rules

	book      *rules.Book
	lacks     func() bool // the topic of rules has lost some
	evaluator *saved.Evaluator
	rejected  *rejected.Recorder
	pruner    *prune.Pruner
	eraser    *erasure.Eraser
}

func (s *logStore) build() (err error) {
	if s.archive, err = s.config.Archive.open(); err != nil {
		return err
	}
	erasable, err := s.buildStore()
	if err != nil {
		return err
	}
	s.rejected = rejected.NewRecorder(rejected.Config{
		Redacts: s.book.Redacts, Pool: s.base.Pool, Clock: s.base.Clock, Metrics: s.base.Metrics, Logger: s.base.Logger,
	})
	s.pruner, s.eraser = s.newPruner(), s.base.NewEraser(erasable)
	topic := &bus.RulesTopic{Pool: s.base.Pool, Publisher: s.base.Publisher, Clock: s.base.Clock, Logger: s.base.Logger}
	s.relay = s.base.NewRelay(relay.Config{
		Name: bus.RelayName, Read: bus.ReadOutbox, Announced: true,
		Comparisons: relay.Comparisons{Compare: topic.Compare, Lacks: s.lacks, Compared: topic.Mark},
	})
	return s.buildConsumers()
}

// buildStore makes the log store and the searches in it, and returns what of it is erased.
func (s *logStore) buildStore() ([]erasure.Table, error) {
	limits := postgres.DefaultLimits()
	limits.Bytes, limits.Time = cmp.Or(s.config.Search.SearchBytes, limits.Bytes), cmp.Or(s.config.Search.SearchTime, limits.Time)
	s.store = postgres.NewStore(postgres.Config{
		Readers: s.base.Reads, Replica: s.base.Replica, Objects: s.archive, Limits: limits, Moves: s.config.History.URL != "",
		Clock: s.base.Clock, Metrics: s.base.Metrics,
	})
	merging := postgres.MergerConfig{
		Store: s.store, Pool: s.base.Pool, NewID: uuid.NewString, Clock: s.base.Clock, Metrics: s.base.Metrics, Logger: s.base.Logger,
	}
	searching := searches.Config{
		Concurrency: s.config.Search.concurrency(), AnswerBytes: cmp.Or(s.config.Search.AnswerBytes, defaultAnswers), Metrics: s.base.Metrics,
	}
	erasable := postgres.Erasable(s.archive)
	moves := &postgres.Moves{Pool: s.base.Pool, Store: s.store, Limits: history.Limits()}
	if s.config.History.URL == "" {
		history.RegisterMetrics(s.base.Metrics)
		alone := &blocksOnly{Store: s.store, moves: moves, logger: s.base.Logger}
		searching.Store, s.move = alone, alone.watch
	} else {
		rows, err := s.config.History.open(limits, s.base.Clock)
		if err != nil {
			return nil, err
		}
		mover := history.NewMover(history.Config{
			Moves: moves, Rows: rows, NewID: uuid.NewString, Clock: s.base.Clock, Metrics: s.base.Metrics, Logger: s.base.Logger,
		})
		searching.Store = &history.Store{Blocks: s.store, Rows: rows, Clock: s.base.Clock, Logger: s.base.Logger}
		merging.Rests, s.move, erasable = mover.Working, mover.Run, append(erasable, mover.Erasable())
	}
	s.merger, s.searches = postgres.NewMerger(merging), searches.New(searching)
	return erasable, nil
}

func (s *logStore) buildConsumers() (err error) {
	logStore := &bus.LogStore{Store: s.store, NewID: uuid.NewString}
	s.consumer, err = s.base.NewConsumer(s.config.Logs.Consumer(consumer.Config{
		Group: contract.GroupLogStore, Handle: logStore.Consume, Lanes: bus.Lanes(), Tracer: s.base.Tracer,
	}))
	if err != nil {
		return err
	}
	tenants := erasure.Consumer(contract.GroupIngestTenants)
	tenants.Handle = bus.ConsumeTenants
	s.deleted, err = s.base.NewConsumer(tenants)
	return err
}

// run stores the log once the topic exists: a group member that
// joins earlier never gets partitions.
func (s *logStore) run(ctx context.Context, sum func(context.Context) error) error {
	if err := s.ensureTopics(ctx); err != nil {
		return err
	}
	for {
		err := s.migrate(ctx)
		if err == nil {
			break
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		s.base.Logger.Warn("cannot keep entries yet: the log holds them", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, retryDelay)
	}
	return lifecycle.Run(ctx, s.consumer.Run, s.deleted.Run, s.eraser.Run, s.pruner.Run, s.merger.Run, s.move, s.runArchiver, s.relay.Run,
		s.evaluator.Run, s.rejected.Run, sum)
}

// runArchiver moves texts of past days to the archive, where there is one.
func (s *logStore) runArchiver(ctx context.Context) error {
	if s.archive == nil || s.config.History.URL != "" { // whose cold parts are its own
		return nil
	}
	return postgres.NewArchiver(postgres.ArchiverConfig{
		Pool: s.base.Pool, Objects: s.archive, After: cmp.Or(s.config.Archive.ArchiveAfter, defaultArchiveAfter),
		Clock: s.base.Clock, Metrics: s.base.Metrics, Logger: s.base.Logger,
	}).Run(ctx)
}

// migrateTimeout is how long a start waits for the schema. run
// continues without a deadline, which would restart large migrations forever.
const migrateTimeout = 10 * time.Second

// migrateAtStart is migrate for a start, which accepts entries without
// the database.
func (s *logStore) migrateAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	return s.migrate(ctx)
}

// migrate brings the schema up to date, once, and reads the
// cursor key. It may wait for another process.
func (s *logStore) migrate(ctx context.Context) error {
	if s.migrated {
		return nil
	}
	err := s.base.Migrate(ctx, Schema())
	s.migrated = err == nil
	return err
}

// ensureTopics creates ingest's topics where they are missing.
// It retries until there is a broker.
func (s *logStore) ensureTopics(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.base.EnsureTopics(ctx, contract.Topics(s.config.Publish.LogPartitions, s.config.Publish.LogRetention))
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			s.base.Logger.Warn("cannot create the topics yet", slog.String("error", err.Error()))
		}
		lifecycle.Pause(ctx, retryDelay)
	}
	return nil
}

// newPruner keeps all tables of the schema within their bounds.
func (s *logStore) newPruner() *prune.Pruner {
	return prune.New(prune.Config{
		Pool: s.base.Pool, Tables: s.tables,
		Fixed: slices.Concat(sharedbus.Fixed(), []prune.Bound{cursorkey.Bound()}, postgres.UncountedBounds(), postgres.MergeBounds(),
			postgres.MoveBounds(), postgres.SavedBounds(), postgres.RuleBounds()),
		Clock: s.config.Clock, Metrics: s.base.Metrics, Logger: s.base.Logger,
	})
}

func (s *logStore) tables(clock func() time.Time) []prune.Table {
	return slices.Concat(postgres.Tables(s.archive, clock), postgres.RejectedTables(clock), inbox.Tables(clock), s.config.Retention.Tables(clock),
		[]prune.Table{s.config.Deletions.Table(clock), outbox.Table(bus.RelayName)})
}
