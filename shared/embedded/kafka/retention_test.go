package kafka

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// endOffset is where the next record of a topic's first partition will go.
func endOffset(t *testing.T, addr, topic string) int64 {
	t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), client(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Topics[0].Partitions[0].Offset
}

// Retention deletes whole files that are too old or too many, never the one in use: even when all
// has expired and the process is killed, the partition goes on where it ended.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	create(t, b.Addr(), "test.logs", "retention.ms", "60000", "segment.bytes", "100")
	create(t, b.Addr(), "test.facts", "retention.ms", "-1", "segment.bytes", "100")
	for _, topic := range []string{"test.logs", "test.facts"} {
		produce(t, b.Addr(), topic, values(10)...)
	}
	if err := b.keeper.runOnce(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := files(t, dir, "test.logs"); n != 1 {
		t.Errorf("%d files of an expired log are left, want the one in use", n)
	}
	if n := files(t, dir, "test.facts"); n < 2 {
		t.Errorf("%d files of a log that is kept for ever are left", n)
	}
	crash := crashed(t, dir)
	stop(t, b)
	b = start(t, Config{Dir: crash})
	if end := endOffset(t, b.Addr(), "test.logs"); end != 10 {
		t.Errorf("the next offset is %d after a crash, want 10", end)
	}
}

// Records age by a clock that runs ahead of the machine's: those of an hour ago go, those of just
// now stay, also after a start.
func TestRetentionByAClockAhead(t *testing.T) {
	dir, ahead := t.TempDir(), 30*24*time.Hour
	config := Config{Dir: dir, SegmentBytes: 100, Clock: func() time.Time { return time.Now().Add(ahead) }}
	b := start(t, config)
	create(t, b.Addr(), "test.logs", "retention.ms", "3600000")
	produce(t, b.Addr(), "test.logs", values(10)...)
	retain := func() int {
		t.Helper()
		if err := b.Retain(t.Context()); err != nil {
			t.Fatal(err)
		}
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
	if n := retain(); n != 1 {
		t.Errorf("%d files are left, want the one in use", n)
	}
}

func files(t *testing.T, dir, topic string) int {
	t.Helper()
	segments, err := readSegments(filepath.Join(dir, "partitions", topic+"-0"))
	if err != nil {
		t.Fatal(err)
	}
	return len(segments)
}

// crashed is a copy of a data directory as a crash would leave it now.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A start drops what newer records of the same key have replaced, and keeps the newest of each.
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

// A crash in the middle of compaction, when kfake has deleted the old files, loses nothing.
func TestInterruptedCompaction(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	create(t, b.Addr(), "test.state", "cleanup.policy", "compact")
	produce(t, b.Addr(), "test.state", updates(50)...)
	stop(t, b)
	partition := filepath.Join(dir, "partitions", "test.state-0")
	if err := keepLinks(dir, []string{partition}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(partition); err != nil {
		t.Fatal(err)
	}
	checkState(t, start(t, Config{Dir: dir}))
}

// updates are n values of two keys each.
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
	produce(t, b.Addr(), "test.state", kgo.KeyStringRecord("end", "end"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := client(t, b.Addr(), kgo.ConsumeTopics("test.state"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	state := map[string]string{}
	for state["end"] == "" {
		for _, r := range c.PollFetches(ctx).Records() {
			state[string(r.Key)] = strings.TrimSpace(string(r.Value))
		}
		if ctx.Err() != nil {
			t.Fatalf("read only %v", state)
		}
	}
	if state["a"] != "a49" || state["b"] != "b49" {
		t.Errorf("state %v, want the last value of each key", state)
	}
}

func size(t *testing.T, dir, topic string) (n int64) {
	t.Helper()
	segments, err := readSegments(filepath.Join(dir, "partitions", topic+"-0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		info, err := os.Stat(s.path)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}
