package kafka

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

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
