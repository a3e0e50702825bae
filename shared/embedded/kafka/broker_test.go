package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
)

func start(t *testing.T, cfg Config) *Broker {
	t.Helper()
	cfg.Logger, cfg.Open = slog.New(slog.DiscardHandler), true
	b, err := Start(cfg)
	testenv.Must(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func stop(t *testing.T, b *Broker) {
	t.Helper()
	testenv.Must(t, b.Close())
}

func client(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.DisableClientMetrics())...)
	testenv.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// create creates a topic of one partition; configs are pairs of name and value.
func create(t *testing.T, addr, name string, configs ...string) {
	t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		topic.Configs = append(topic.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), client(t, addr))
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("cannot create %s: %v %+v", name, err, resp)
	}
}

// produce writes each record in its own request, as a separate batch.
func produce(t *testing.T, addr, topic string, records ...*kgo.Record) {
	t.Helper()
	c := client(t, addr, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for _, r := range records {
		testenv.Must(t, c.ProduceSync(t.Context(), r).FirstErr())
	}
}

// consume reads a topic from its start until n records came.
func consume(t *testing.T, addr, topic string, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := client(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var records []*kgo.Record
	for len(records) < n {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d records of %s: %v", len(records), n, topic, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

func values(n int) []*kgo.Record {
	var records []*kgo.Record
	for i := range n {
		records = append(records, kgo.StringRecord(strconv.Itoa(i)))
	}
	return records
}

// Records written before an orderly stop are there after it,
// and offsets continue.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	create(t, b.Addr(), "test.kept")
	produce(t, b.Addr(), "test.kept", values(3)...)
	stop(t, b)

	b = start(t, Config{Dir: dir})
	produce(t, b.Addr(), "test.kept", kgo.StringRecord("3"))
	for i, r := range consume(t, b.Addr(), "test.kept", 4) {
		if string(r.Value) != strconv.Itoa(i) || r.Offset != int64(i) {
			t.Errorf("offset %d holds %q, want %d", r.Offset, r.Value, i)
		}
	}
}

// Every failure of a start is one line with a remedy.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	_, port, _ := net.SplitHostPort(b.Addr())
	taken, _ := strconv.Atoi(port)
	for _, test := range []struct {
		cfg  Config
		want error
		says string
	}{
		{Config{Port: taken, Open: true}, ErrPortInUse, b.Addr()},
		{Config{Dir: dir}, ErrLocked, dir},
	} {
		test.cfg.Logger = slog.New(slog.DiscardHandler)
		_, err := Start(test.cfg)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line of %q that names %s", err, test.want, test.says)
		}
	}
}

// A request in a version that Apache Kafka 4 dropped ends the
// connection, as there, and is listed.
func TestRefusesDroppedVersions(t *testing.T) {
	for _, test := range []struct {
		key     kmsg.Key
		version int16
		refused bool
	}{
		{kmsg.JoinGroup, 1, true},
		{kmsg.Produce, 2, true},
		{kmsg.Fetch, 3, true},
		{kmsg.ListOffsets, 0, true},
		{kmsg.OffsetCommit, 1, true},
		{kmsg.OffsetFetch, 0, true},
		{kmsg.CreateTopics, 1, true},
		{kmsg.DeleteTopics, 0, true},
		{kmsg.OffsetForLeaderEpoch, 1, true},
		{kmsg.DescribeConfigs, 0, true},
		{kmsg.CreateACLs, 0, true},
		{kmsg.DescribeLogDirs, 0, true},
		{kmsg.Metadata, 0, false},
		{kmsg.FindCoordinator, 0, false},
		{kmsg.ApiVersions, 0, false},
		{kmsg.JoinGroup, 2, false},
		{kmsg.ListOffsets, 1, false},
		{kmsg.OffsetCommit, 2, false},
		{kmsg.OffsetFetch, 1, false},
	} {
		name := fmt.Sprintf("%s v%d", test.key.Name(), test.version)
		t.Run(name, func(t *testing.T) {
			b := start(t, Config{})
			answered := ask(t, b.Addr(), test.key, test.version)
			refused := len(b.Refused()) == 1 && b.Refused()[0] == name
			if answered == test.refused || refused != test.refused {
				t.Errorf("answered %v, refusals %v; want refused = %v", answered, b.Refused(), test.refused)
			}
		})
	}
}

// ask sends an empty request and reports whether an answer came.
func ask(t *testing.T, addr string, key kmsg.Key, version int16) bool {
	t.Helper()
	req := kmsg.RequestForKey(int16(key))
	req.SetVersion(version)
	body := kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
	conn, err := net.Dial("tcp", addr)
	testenv.Must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write(body); err != nil {
		t.Fatal(err)
	}
	var size uint32
	return binary.Read(conn, binary.BigEndian, &size) == nil
}

// A client that does not speak Kafka, such as a browser, is
// refused without harm.
func TestStrangers(t *testing.T) {
	b := start(t, Config{})
	if _, err := http.Get("http://" + b.Addr()); err == nil {
		t.Error("the broker answered HTTP")
	}
	conn, err := net.Dial("tcp", b.Addr())
	testenv.Must(t, err)
	defer conn.Close()
	conn.Write([]byte{0, 0, 0, 8, 0x7f, 0xff, 0, 0, 0, 0, 0, 0}) // an unknown request
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	create(t, b.Addr(), "test.alive")
}

// A record more than an hour ahead is refused, as by Apache Kafka,
// without effect: records with right times are still accepted.
func TestFutureTimestampsAreRefused(t *testing.T) {
	b := start(t, Config{})
	create(t, b.Addr(), "test.future")
	c := client(t, b.Addr(), kgo.DefaultProduceTopic("test.future"))
	for _, test := range []struct {
		ahead time.Duration
		want  error
	}{{0, nil}, {50 * time.Minute, nil}, {70 * time.Minute, kerr.InvalidTimestamp}, {-1000 * time.Hour, nil}} {
		r := &kgo.Record{Value: []byte(test.ahead.String()), Timestamp: time.Now().Add(test.ahead)}
		if err := c.ProduceSync(t.Context(), r).FirstErr(); !errors.Is(err, test.want) {
			t.Errorf("%s ahead: %v, want %v", test.ahead, err, test.want)
		}
	}
	if records := consume(t, b.Addr(), "test.future", 3); len(records) != 3 {
		t.Errorf("%d records, want 3", len(records))
	}
}

// A broker is found by its directory while it serves that, and
// looking creates none.
func TestRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kafka")
	if _, err := Running(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("of a directory that is not there: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("looking for a broker has made its directory")
	}
	b := start(t, Config{Dir: dir})
	if address, err := Running(dir); err != nil || address != b.Addr() {
		t.Errorf("found %q, %v, want %s", address, err, b.Addr())
	}
	stop(t, b)
	if _, err := Running(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after its end: %v", err)
	}
}
