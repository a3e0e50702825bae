package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

const (
	housekeeping  = time.Minute // between rounds
	compactBeyond = 32 << 20    // default of Config.CompactBytes
)

// A housekeeper deletes what has expired, has small batches packed and
// compacted topics compacted, and forgets groups that nobody uses.
type housekeeper struct {
	store   *storage.Store
	groups  *group.Coordinator
	clock   func() time.Time
	logger  *slog.Logger
	metrics *metrics
	cancel  context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	beyond int64 // bytes of compacted topics from which on they are compacted
	left   int64 // after the last compaction
}

func startHousekeeper(cfg Config, store *storage.Store, groups *group.Coordinator) *housekeeper {
	ctx, cancel := context.WithCancel(context.Background())
	h := &housekeeper{
		store: store, groups: groups, clock: clockOf(cfg), logger: cfg.Logger, metrics: newMetrics(cfg.Metrics, store),
		cancel: cancel, done: make(chan struct{}), beyond: cfg.CompactBytes, left: store.CompactedBytes(),
	}
	if h.beyond == 0 {
		h.beyond = compactBeyond
	}
	go h.run(ctx)
	return h
}

func (h *housekeeper) stop() {
	h.cancel()
	<-h.done
}

func (h *housekeeper) run(ctx context.Context) {
	defer close(h.done)
	ticker := time.NewTicker(housekeeping)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := h.runOnce(); err != nil {
				h.logger.Warn("embedded broker: cannot delete what is expired or replaced", "error", err)
			}
		}
	}
}

func (h *housekeeper) runOnce() error {
	return errors.Join(h.retain(), h.groups.Expire(h.clock()), storage.Pack(h.store), h.compactIfLarge())
}

func (h *housekeeper) retain() error { return h.store.Retain(h.clock()) }

// compactIfLarge compacts if the files are twice as large as after the
// last compaction, and not small.
func (h *housekeeper) compactIfLarge() error {
	h.mu.Lock()
	large := h.store.CompactedBytes() > max(h.beyond, 2*h.left)
	h.mu.Unlock()
	if !large {
		return nil
	}
	return h.compact()
}

func (h *housekeeper) compact() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.store.Compact(h.clock()); err != nil {
		return err
	}
	h.metrics.compactions.Inc()
	h.left = h.store.CompactedBytes()
	return nil
}

type metrics struct{ compactions prometheus.Counter }

func newMetrics(registerer prometheus.Registerer, store *storage.Store) *metrics {
	factory := promauto.With(registerer)
	gauge := func(name, help string, value func() int64) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	gauge("weir_broker_compacted_bytes", "Bytes of the compacted topics' files in the embedded broker.", store.CompactedBytes)
	gauge("weir_broker_refusing_partitions", "Partitions of the embedded broker whose last append the disk refused. They take records again once it does.",
		func() int64 { return store.Stats().Refusing })
	gauge("weir_broker_failed_partitions", "Partitions of the embedded broker that refuse records until its next start, because the disk refused a sync.",
		func() int64 { return store.Stats().Failed })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_broker_syncs_total", Help: "Syncs of the embedded broker's log files to the disk. Each covers all records that waited.",
	}, func() float64 { return float64(store.Stats().Syncs) })
	return &metrics{factory.NewCounter(prometheus.CounterOpts{
		Name: "weir_broker_compactions_total", Help: "Compactions of the embedded broker's compacted topics while it served.",
	})}
}

// Errors of Err.
var (
	errRefuses = errors.New("the embedded broker refuses records until it can write")
	errFailed  = errors.New("the embedded broker could not sync its log, and refuses records of some partitions until the next start")
)

// Err returns why records are refused, or nil. A partition that could not
// append tries again with the next record, which may never come, so its
// refusal counts only while the directory still can't be written to.
func (b *Broker) Err() error {
	stats := b.store.Stats()
	if stats.Failed > 0 {
		return errFailed
	}
	if dir := b.store.Dir(); stats.Refusing > 0 && dir != "" {
		if err := tryWrite(filepath.Join(dir, "probe")); err != nil {
			return fmt.Errorf("%w: %w", errRefuses, err)
		}
	}
	return nil
}

// tryWrite writes a file to the disk, and removes it.
func tryWrite(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 4<<10))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(path))
}

// A Cut is the end of a partition's log that Repair has moved aside.
type Cut = storage.Cut

// Repair cuts each damaged partition of a data directory at its first
// damage, so that Start takes the directory. It deletes nothing: what
// it cuts off is moved to a directory under "damaged". It does nothing
// to a sound directory, and returns ErrLocked while a broker serves it.
func Repair(dir string) (cuts []Cut, err error) {
	if _, err := os.Stat(dir); err != nil { // locking would create it
		return nil, fmt.Errorf("cannot repair the broker's data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	cuts, err = storage.Repair(optionsOf(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}))
	return cuts, errors.Join(err, lock.Close())
}
