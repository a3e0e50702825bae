package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A Log reads weir.logs.v1 from any position, without a group and up to an end, which no reader of shared/bus does: it
// uses kafka-go's own.
type Log struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
}

// Ends are the offsets at which the next record of each partition will stand.
func (l *Log) Ends(ctx context.Context) (ingest.Positions, error) {
	_, ends, err := l.bounds(ctx)
	return ends, err
}

// A Charge is what one record of the log costs whom.
type Charge struct {
	Organization string
	At           time.Time
	Bytes        int64
	Partition    int
	Offset       int64
}

// ReadGap returns the charges from the given positions to the ends that the log has now: what was accepted and perhaps
// not yet counted when a process starts.
func (l *Log) ReadGap(ctx context.Context, from ingest.Positions) ([]Charge, error) {
	starts, ends, err := l.bounds(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var charges []Charge
	add := func(c Charge) {
		mu.Lock()
		defer mu.Unlock()
		charges = append(charges, c)
	}
	var readers []func(context.Context) error
	for partition, end := range ends {
		readers = append(readers, func(ctx context.Context) error {
			if err := l.read(ctx, partition, max(from[partition], starts[partition]), end, add); err != nil {
				return fmt.Errorf("cannot read partition %d of %s up to %d: %w", partition, contract.TopicLogs, end, err)
			}
			return nil
		})
	}
	if err := lifecycle.Run(ctx, readers...); err != nil {
		return nil, err
	}
	return charges, ctx.Err()
}

func (l *Log) read(ctx context.Context, partition int, next, end int64, add func(Charge)) (err error) {
	if next >= end {
		return nil
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs, Partition: partition, MaxBytes: 8 << 20, MaxWait: time.Second,
	})
	defer func() { err = errors.Join(err, reader.Close()) }()
	if err := reader.SetOffset(next); err != nil {
		return err
	}
	for next < end {
		m, err := reader.ReadMessage(ctx)
		if err != nil {
			return err
		}
		next = m.Offset + 1
		record := bus.Record{Headers: make([]bus.Header, len(m.Headers))}
		for i, h := range m.Headers {
			record.Headers[i] = bus.Header{Key: h.Key, Value: h.Value}
		}
		event, err := contract.ParseLogsAccepted(record.Header, nil)
		if err != nil {
			continue // the ledger parks it: it is never counted
		}
		add(Charge{event.Organization, event.Time, event.Bytes, partition, m.Offset})
	}
	return nil
}

func (l *Log) bounds(ctx context.Context) (starts, ends ingest.Positions, err error) {
	transport := l.transport()
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(l.Brokers...), Timeout: 10 * time.Second, Transport: transport}
	about, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{contract.TopicLogs}})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find %s: %w", contract.TopicLogs, err)
	}
	var partitions []int
	for _, topic := range about.Topics {
		if topic.Error != nil {
			return nil, nil, fmt.Errorf("cannot find %s: %w", contract.TopicLogs, topic.Error)
		}
		for _, p := range topic.Partitions {
			partitions = append(partitions, p.ID)
		}
	}
	if len(partitions) == 0 {
		return nil, nil, fmt.Errorf("cannot find %s: it has no partitions", contract.TopicLogs)
	}
	if starts, err = offsets(ctx, client, partitions, kafka.FirstOffsetOf); err != nil {
		return nil, nil, err
	}
	ends, err = offsets(ctx, client, partitions, kafka.LastOffsetOf)
	return starts, ends, err
}

// transport makes connections as the dialer does.
func (l *Log) transport() *kafka.Transport {
	t := &kafka.Transport{}
	if l.Dialer != nil {
		t.ClientID, t.DialTimeout, t.Dial, t.TLS, t.SASL = l.Dialer.ClientID, l.Dialer.Timeout, l.Dialer.DialFunc, l.Dialer.TLS, l.Dialer.SASLMechanism
	}
	return t
}

// offsets asks for one end of every partition; both in one request would name each partition twice.
func offsets(ctx context.Context, client *kafka.Client, partitions []int, of func(partition int) kafka.OffsetRequest) (ingest.Positions, error) {
	ask := make([]kafka.OffsetRequest, len(partitions))
	for i, p := range partitions {
		ask[i] = of(p)
	}
	answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{contract.TopicLogs: ask}})
	if err != nil {
		return nil, fmt.Errorf("cannot read the bounds of %s: %w", contract.TopicLogs, err)
	}
	found := ingest.Positions{}
	for _, p := range answer.Topics[contract.TopicLogs] {
		if p.Error != nil {
			return nil, fmt.Errorf("cannot read the bounds of partition %d: %w", p.Partition, p.Error)
		}
		found[p.Partition] = max(p.FirstOffset, p.LastOffset) // the one that was not asked for is -1
	}
	return found, nil
}
