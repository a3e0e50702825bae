package kafka

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// compactBeyond is the default of Config.CompactBytes.
const compactBeyond = 32 << 20

// A compactor compacts while the broker serves.
type compactor struct {
	dir     string
	cluster *kfake.Cluster
	client  *kgo.Client
	beyond  int64

	mu   sync.Mutex         // held during a compaction
	left int64              // bytes after the last compaction
	hold *kfake.FaultHandle // on producers; nil: none

	bytes       prometheus.Gauge
	compactions prometheus.Counter
}

func newCompactor(cfg Config, cluster *kfake.Cluster, client *kgo.Client) *compactor {
	c := &compactor{dir: cfg.Dir, cluster: cluster, client: client, beyond: cfg.CompactBytes}
	if c.beyond == 0 {
		c.beyond = compactBeyond
	}
	c.bytes = promauto.With(cfg.Metrics).NewGauge(prometheus.GaugeOpts{
		Name: "weir_broker_compacted_bytes", Help: "Bytes of the compacted topics' files in the embedded broker, a minute ago at most.",
	})
	c.compactions = promauto.With(cfg.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_broker_compactions_total", Help: "Compactions of the embedded broker's compacted topics while it served.",
	})
	return c
}

// runOnce compacts if the files are twice as large as after the last
// compaction, and not small.
func (c *compactor) runOnce(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, err := c.measure()
	if err = errors.Join(err, c.release(ctx)); err != nil || size <= max(c.beyond, 2*c.left) {
		return err
	}
	return c.compact(ctx)
}

// always compacts at any size.
func (c *compactor) always(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.release(ctx); err != nil {
		return err
	}
	return c.compact(ctx)
}

// compact makes producers retry meanwhile, with Apache Kafka's answer
// while replicas are missing.
func (c *compactor) compact(ctx context.Context) error {
	topics, err := readTopics(c.dir)
	if err != nil {
		return err
	}
	c.hold = c.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1, When: appendsOutside(uncompacted(topics))})
	c.cluster.CoordinatorFor("") // answered after all current appends
	err = suspendRetention(ctx, c.client, c.dir, topics)
	if err == nil {
		err = compactSafely(c.dir, c.cluster.Compact)
	}
	if err = errors.Join(err, c.release(ctx)); err != nil {
		return err
	}
	c.compactions.Inc()
	c.left, err = c.measure()
	return err
}

// release ends a compaction, also one that the process before did not
// end. If the links to the old files can't be removed, producers wait
// until a later call has removed them: a start would restore a log
// without newer records.
func (c *compactor) release(ctx context.Context) error {
	if err := errors.Join(dropLinks(c.dir), resumeRetention(ctx, c.client, c.dir)); err != nil {
		return err
	}
	if c.hold != nil {
		c.hold.Remove()
	}
	c.hold = nil
	return nil
}

// uncompacted returns the names of the topics that are not compacted.
func uncompacted(topics []topic) map[string]bool {
	names := map[string]bool{}
	for _, t := range topics {
		names[t.Name] = !t.compacted()
	}
	return names
}

// appendsOutside reports whether requests append to a topic outside
// names: a new one may be compacted.
func appendsOutside(names map[string]bool) func(kmsg.Request) bool {
	return func(request kmsg.Request) bool {
		for _, topic := range request.(*kmsg.ProduceRequest).Topics {
			if !names[topic.Topic] {
				return true
			}
		}
		return false
	}
}

// measure returns the bytes of all compacted partitions.
func (c *compactor) measure() (size int64, err error) {
	partitions, err := compactedPartitions(c.dir)
	if err != nil {
		return 0, err
	}
	for _, p := range partitions {
		files, err := os.ReadDir(p)
		if err != nil {
			return 0, err
		}
		for _, file := range files {
			info, err := os.Stat(filepath.Join(p, file.Name()))
			if errors.Is(err, fs.ErrNotExist) { // renamed or removed meanwhile
				continue
			}
			if err != nil {
				return 0, err
			}
			size += info.Size()
		}
	}
	c.bytes.Set(float64(size))
	return size, nil
}
