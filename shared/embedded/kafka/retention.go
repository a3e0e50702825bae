package kafka

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	housekeeping = time.Minute                // between searches for expired files
	never        = 100 * 365 * 24 * time.Hour // for timers that must not fire
)

// A housekeeper deletes a log's files beyond retention.ms and
// retention.bytes, and has compacted topics compacted. Like Apache
// Kafka it deletes whole files, the current one only if it has expired,
// and a partition keeps its end.
type housekeeper struct {
	compactor *compactor

	dir    string
	clock  func() time.Time
	ahead  bool // the clock is not the machine's, which stamps files
	client *kgo.Client
	logger *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
}

// startHousekeeper starts one for the broker at addr; nil without a directory.
func startHousekeeper(cfg Config, cluster *kfake.Cluster, addr, password string) (*housekeeper, error) {
	if cfg.Dir == "" {
		return nil, nil
	}
	client, err := kgo.NewClient(append(signingIn(password), kgo.SeedBrokers(addr), kgo.DisableClientMetrics())...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &housekeeper{
		compactor: newCompactor(cfg, cluster, client), dir: cfg.Dir, clock: cfg.Clock, ahead: cfg.Clock != nil, client: client, logger: cfg.Logger,
		cancel: cancel, done: make(chan struct{}),
	}
	if h.clock == nil {
		h.clock = time.Now //nolint:forbidigo // files are stamped by the machine's clock
	}
	go h.run(ctx)
	return h, nil
}

func (h *housekeeper) stop() {
	if h == nil {
		return
	}
	h.cancel()
	<-h.done
	h.client.Close()
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
			if err := errors.Join(h.runOnce(ctx, h.clock()), h.compactor.runOnce(ctx)); err != nil && ctx.Err() == nil {
				h.logger.Warn("embedded broker: cannot delete what is expired or replaced", "error", err)
			}
		}
	}
}

func (h *housekeeper) runOnce(ctx context.Context, now time.Time) error {
	topics, err := readTopics(h.dir)
	if err != nil {
		return err
	}
	for _, t := range topics {
		for p := range t.Partitions {
			if err := h.keepPartition(ctx, t, p, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *housekeeper) keepPartition(ctx context.Context, t topic, partition int, now time.Time) error {
	if t.compacted() {
		return nil
	}
	segments, err := readSegments(t.partitionDir(h.dir, partition))
	if err != nil {
		return err
	}
	if h.ahead {
		if err := restamp(segments, now); err != nil {
			return err
		}
	}
	first := firstKept(segments, now, t.limit("retention.ms"), t.limit("retention.bytes"))
	switch {
	case first == 0:
		return nil
	case first == len(segments):
		return h.deleteAll(ctx, t, partition, segments[first-1])
	}
	return h.deleteBefore(ctx, t.Name, partition, segments[first].base)
}

// deleteAll deletes a log to the end of its last file. Concurrent
// writes keep that file.
func (h *housekeeper) deleteAll(ctx context.Context, t topic, partition int, last segment) error {
	end, err := inspectSegment(last, true)
	if err != nil || end == 0 {
		return err
	}
	if err := noteEnd(t.partitionDir(h.dir, partition), end); err != nil {
		return err
	}
	return h.deleteBefore(ctx, t.Name, partition, end)
}

// restamp gives files written since the last look the time of a clock
// ahead of the machine's. A stamp later than the machine's time is from
// an earlier look.
func restamp(segments []segment, now time.Time) error {
	machine := time.Now() //nolint:forbidigo // as files are stamped
	for _, s := range segments {
		info, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		if info.ModTime().After(machine) {
			continue
		}
		if err := os.Chtimes(s.path, now, now); err != nil {
			return err
		}
	}
	return nil
}

// firstKept returns the index of the oldest file to keep, given limits of
// which -1 means none; the number of files if the last one has expired.
func firstKept(segments []segment, now time.Time, retentionMillis, retentionBytes int64) int {
	first, kept := len(segments), int64(0)
	for i := len(segments) - 1; i >= 0; i-- {
		info, err := os.Stat(segments[i].path)
		if err != nil {
			return min(first, max(len(segments)-1, 0))
		}
		kept += info.Size()
		expired := retentionMillis >= 0 && now.Sub(info.ModTime()).Milliseconds() >= retentionMillis
		if expired || i < len(segments)-1 && retentionBytes >= 0 && kept > retentionBytes {
			return first
		}
		first = i
	}
	return first
}

func (h *housekeeper) deleteBefore(ctx context.Context, topic string, partition int, offset int64) error {
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = int32(partition), offset
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, h.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
