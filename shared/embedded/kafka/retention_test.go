package kafka

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
)

// endOffset returns the next offset of a topic's first partition.
func endOffset(t *testing.T, addr, topic string) int64 {
	t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), client(t, addr))
	testenv.Must(t, err)
	return resp.Topics[0].Partitions[0].Offset
}

// Retention deletes whole files that are too old or too many, also the
// current one: if all have expired and the process is killed, the
// partition continues at its end.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	create(t, b.Addr(), "test.logs", "retention.ms", "60000", "segment.bytes", "100")
	create(t, b.Addr(), "test.facts", "retention.ms", "-1", "segment.bytes", "100")
	for _, topic := range []string{"test.logs", "test.facts"} {
		produce(t, b.Addr(), topic, values(10)...)
	}
	testenv.Must(t, b.store.Retain(time.Now().Add(time.Hour)))
	if n := files(t, dir, "test.logs"); n != 0 {
		t.Errorf("%d files of an expired log are left", n)
	}
	if n := files(t, dir, "test.facts"); n < 2 {
		t.Errorf("%d files of a log that is kept forever are left", n)
	}
	crash := crashed(t, dir)
	stop(t, b)
	b = start(t, Config{Dir: crash})
	if end := endOffset(t, b.Addr(), "test.logs"); end != 10 {
		t.Errorf("the next offset is %d after a crash, want 10", end)
	}
}

// Records age by a clock ahead of the machine's: those of an hour ago
// are deleted, new ones stay, also after a start.
func TestRetentionByAClockAhead(t *testing.T) {
	dir, ahead := t.TempDir(), 30*24*time.Hour
	config := Config{Dir: dir, SegmentBytes: 100, Clock: func() time.Time { return time.Now().Add(ahead) }}
	b := start(t, config)
	create(t, b.Addr(), "test.logs", "retention.ms", "3600000")
	produce(t, b.Addr(), "test.logs", values(10)...)
	retain := func() int {
		t.Helper()
		testenv.Must(t, b.Retain(t.Context()))
		return files(t, dir, "test.logs")
	}
	old := retain()
	if old < 2 {
		t.Fatalf("of what was just written %d files are left", old)
	}
	ahead += 2 * time.Hour
	produce(t, b.Addr(), "test.logs", values(10)...)
	young := retain()
	if young < 2 || young > old+2 {
		t.Errorf("%d files are left, want those of now; there were %d", young, old)
	}
	stop(t, b)
	ahead += 30 * time.Minute
	b = start(t, config)
	if n := retain(); n != young {
		t.Errorf("after a start %d of %d young files are left", n, young)
	}
	ahead += time.Hour
	if n := retain(); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// A quiet topic loses its expired records each time, and keeps its end
// over stops and crashes. Readers get only later records.
func TestRetentionOfAQuietTopic(t *testing.T) {
	dir, ahead := t.TempDir(), 24*time.Hour
	config := Config{Dir: dir, Clock: func() time.Time { return time.Now().Add(ahead) }}
	b := start(t, config)
	create(t, b.Addr(), "test.logs", "retention.ms", "60000")
	for written := 1; written <= 3; written++ {
		produce(t, b.Addr(), "test.logs", kgo.StringRecord("a canary"))
		if got := consume(t, b.Addr(), "test.logs", 1); got[0].Offset != int64(written-1) {
			t.Errorf("record %d is at offset %d", written, got[0].Offset)
		}
		if err := b.Retain(t.Context()); err != nil || grep(t, dir, "canary") == "" {
			t.Fatalf("what is young is gone: %v", err)
		}
		ahead += time.Hour
		testenv.Must(t, b.Retain(t.Context()))
		if left := grep(t, dir, "canary"); left != "" {
			t.Errorf("%s has what expired", left)
		}
		crash := crashed(t, dir)
		stop(t, b)
		if written == 2 { // the others are orderly stops
			dir = crash
		}
		config.Dir = dir
		b = start(t, config)
		if end := endOffset(t, b.Addr(), "test.logs"); end != int64(written) {
			t.Errorf("the next offset is %d after a start, want %d", end, written)
		}
	}
}

// grep returns a file of a directory that contains a text.
func grep(t *testing.T, dir, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = path
		}
		return err
	})
	testenv.Must(t, err)
	return found
}

func files(t *testing.T, dir, topic string) int {
	t.Helper()
	n, _ := logOf(t, dir, topic)
	return n
}

// crashed returns a copy of a data directory as a crash would leave it now.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	testenv.Must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// A start drops replaced records, and keeps the newest of each key.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
	produce(t, b.Addr(), "test.state", updates(50)...)
	stop(t, b)
	before := size(t, dir, "test.state")

	b = start(t, Config{Dir: dir})
	checkState(t, b)
	if after := size(t, dir, "test.state"); after > before/2 {
		t.Errorf("%d bytes after compaction of %d", after, before)
	}
	b = start(t, Config{Dir: crashed(t, dir)})
	checkState(t, b)
}

// updates returns n values of each of two keys.
func updates(n int) []*kgo.Record {
	var records []*kgo.Record
	for i := range n {
		for _, key := range []string{"a", "b"} {
			value := fmt.Sprintf("%s%d%s", key, i, strings.Repeat(" ", 100))
			records = append(records, kgo.KeyStringRecord(key, value))
		}
	}
	return records
}

func checkState(t *testing.T, b *Broker) {
	t.Helper()
	if state, _ := stateOf(t, b, "test.state"); state["a"] != "a49" || state["b"] != "b49" {
		t.Errorf("state %v, want the last value of each key", state)
	}
}

// stateOf reads the newest value of each key, and the number of records.
func stateOf(t *testing.T, b *Broker, topic string) (state map[string]string, records int) {
	t.Helper()
	produce(t, b.Addr(), topic, kgo.KeyStringRecord("end", "end"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := client(t, b.Addr(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	state = map[string]string{}
	for end := endOffset(t, b.Addr(), topic); ; {
		for _, r := range c.PollFetches(ctx).Records() {
			state[string(r.Key)] = strings.TrimSpace(string(r.Value))
			if records++; r.Offset == end-1 {
				return state, records
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("read only %v", state)
		}
	}
}

// A serving broker compacts once the files are twice as large, and not
// before; nothing is lost, readers continue.
func TestCompactionWhileServing(t *testing.T) {
	dir, metrics := t.TempDir(), prometheus.NewRegistry()
	b := start(t, Config{Dir: dir, CompactBytes: 20_000, Metrics: metrics})
	create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
	for round := range 3 {
		produce(t, b.Addr(), "test.state", updates(50)...)
		before := size(t, dir, "test.state")
		testenv.Must(t, b.keeper.compactIfLarge())
		after := size(t, dir, "test.state")
		if compacted := after < before/2; compacted != (before > 20_000) {
			t.Errorf("round %d: %d bytes of %d are left", round, after, before)
		}
		if _, records := stateOf(t, b, "test.state"); after < before && records > 10 {
			t.Errorf("round %d: %d records are left", round, records)
		}
		checkState(t, b)
	}
	if n := testutil.ToFloat64(b.keeper.metrics.compactions); n == 0 {
		t.Errorf("%v compactions are counted", n)
	}
	b = start(t, Config{Dir: crashed(t, dir)})
	checkState(t, b)
}

// A partition that has expired whole when another one is compacted
// continues at its end, also after a crash, and keeps its retention.
func TestCompactionKeepsTheEndOfWhatHasExpired(t *testing.T) {
	for _, atStart := range []bool{true, false} {
		dir := t.TempDir()
		b := start(t, Config{Dir: dir})
		create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
		create(t, b.Addr(), "test.logs", "retention.ms", "0", "segment.bytes", "100")
		produce(t, b.Addr(), "test.state", updates(2)...)
		produce(t, b.Addr(), "test.logs", values(10)...)
		if atStart {
			stop(t, b)
			start(t, Config{Dir: dir})
		} else if err := b.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		b = start(t, Config{Dir: crashed(t, dir)})
		if end := endOffset(t, b.Addr(), "test.logs"); end != 10 {
			t.Errorf("at a start %t: the next offset is %d, want 10", atStart, end)
		}
		if err := b.Retain(t.Context()); err != nil || files(t, b.store.Dir(), "test.logs") != 0 {
			t.Errorf("at a start %t: %d files of an expired log are left; %v", atStart, files(t, b.store.Dir(), "test.logs"), err)
		}
	}
}

func size(t *testing.T, dir, topic string) int64 {
	t.Helper()
	_, n := logOf(t, dir, topic)
	return n
}

// logOf returns how many files with records a topic has, and their bytes.
func logOf(t *testing.T, dir, topic string) (files int, bytes int64) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "partitions", topic+"-0", "*.dat"))
	testenv.Must(t, err)
	for _, file := range found {
		info, err := os.Stat(file)
		testenv.Must(t, err)
		if info.Size() > 0 {
			files++
		}
		bytes += info.Size()
	}
	return files, bytes
}

// Compressed batches are compacted, too.
func TestCompactionOfCompressedBatches(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, Config{})
			create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
			c := client(t, b.Addr(), kgo.DefaultProduceTopic("test.state"), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
			testenv.Must(t, c.ProduceSync(t.Context(), updates(50)...).FirstErr())
			before := b.store.CompactedBytes()
			testenv.Must(t, b.Compact(t.Context()))
			checkState(t, b)
			if _, records := stateOf(t, b, "test.state"); records > 5 {
				t.Errorf("%d records are left, in %d bytes of %d", records, b.store.CompactedBytes(), before)
			}
		})
	}
}

// Batches of one record are packed, whatever compresses them, and read as
// they were: keys, values, headers, times and offsets.
func TestPackedBatches(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, Config{})
			create(t, b.Addr(), "test.logs")
			c := client(t, b.Addr(), kgo.DefaultProduceTopic("test.logs"), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(0))
			var sent []*kgo.Record
			for i := range 200 {
				r := &kgo.Record{
					Key: fmt.Append(nil, "key ", i), Value: fmt.Append(nil, "what is said about number ", i),
					Headers:   []kgo.RecordHeader{{Key: "ce_id", Value: fmt.Append(nil, i)}, {Key: "ce_type", Value: []byte("a type that all have")}},
					Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i*i)),
				}
				testenv.Must(t, c.ProduceSync(t.Context(), r).FirstErr())
				sent = append(sent, r)
			}
			p := b.store.Topic("test.logs").Partitions()[0]
			before := p.Bytes()
			if err := b.Pack(t.Context()); err != nil || p.Bytes() > before/4 {
				t.Errorf("%d bytes are packed into %d: %v", before, p.Bytes(), err)
			}
			for i, r := range consume(t, b.Addr(), "test.logs", len(sent)) {
				s := sent[i]
				if r.Offset != int64(i) || string(r.Key) != string(s.Key) || string(r.Value) != string(s.Value) || !r.Timestamp.Equal(s.Timestamp) || fmt.Sprint(r.Headers) != fmt.Sprint(s.Headers) {
					t.Fatalf("record %d is %+v, want %+v", i, r, s)
				}
			}
		})
	}
}
