package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// BenchmarkProduce sends batches of 48 KB by several clients to a topic
// of four partitions, with and without syncs, which it counts.
func BenchmarkProduce(b *testing.B) {
	const clients = 8
	for _, sync := range []Sync{SyncAlways, SyncOS} {
		b.Run(string(sync), func(b *testing.B) {
			broker, err := Start(Config{Dir: b.TempDir(), Open: true, Sync: sync, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			defer broker.Close()
			if _, err := broker.store.Create("test.bench", 4, nil); err != nil {
				b.Fatal(err)
			}
			value := make([]byte, 48<<10)
			before := broker.store.Stats().Syncs
			b.SetBytes(int64(len(value)))
			b.ResetTimer()
			var wait produceAll
			for client := range clients {
				wait.Go(func() { wait.note(produceSome(broker.Addr(), client, b.N/clients+1, value)) })
			}
			wait.Wait()
			b.ReportMetric(float64(broker.store.Stats().Syncs-before)/float64(b.N), "syncs/op")
			if wait.err != nil {
				b.Fatal(wait.err)
			}
		})
	}
}

// produceAll waits for clients, and has their first error.
type produceAll struct {
	sync.WaitGroup

	mu  sync.Mutex
	err error
}

func (p *produceAll) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// produceSome sends one batch after the other.
func produceSome(addr string, client, batches int, value []byte) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DisableClientMetrics(), kgo.DefaultProduceTopic("test.bench"),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range batches {
		if err := c.ProduceSync(context.Background(), kgo.KeySliceRecord(fmt.Append(nil, client, i), value)).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}
