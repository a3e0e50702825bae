package parked_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/parked"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	busparked "github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

var update = flag.Bool("update", false, "write the golden files")

// A module is a schema with a consumer that refuses everything until
// it is healed.
type module struct {
	healed atomic.Bool
	effect atomic.Int64
}

func newModule(t *testing.T, url, schema string, brokers []string, topic string) *module {
	t.Helper()
	pool, err := pg.OpenMigrated(t.Context(), url, schema, bus.Migrations())
	testenv.Must(t, err)
	m := &module{}
	c, err := consumer.New(consumer.Config{
		Brokers: brokers, Group: "test." + schema, Topic: topic, Pool: pool, Tuning: consumer.Tuning{ParkedWatch: 20 * time.Millisecond},
		Handle: func(_ context.Context, _ pgx.Tx, records []bus.Record) error {
			if !m.healed.Load() {
				return bus.Permanent(errors.New("cannot read it\nfor several reasons"))
			}
			m.effect.Add(int64(len(records)))
			return nil
		},
	}, testenv.Logger(t))
	testenv.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		pool.Close()
	})
	return m
}

// The store lists the records of all modules of a database, and each
// module applies its own.
func TestStore(t *testing.T) {
	url, brokers, topic := postgrestest.URL(t), kafkatest.Brokers(t), "test.store"
	ctx := t.Context()
	testenv.Must(t, topics.Ensure(ctx, brokers, []contract.Topic{{Name: topic, Partitions: 1}}))
	one, two := newModule(t, url, "one", brokers, topic), newModule(t, url, "two", brokers, topic)
	p, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	defer p.Close()
	testenv.Must(t, p.Publish(topic, message.NewMessage("a", []byte("v")), message.NewMessage("b", []byte("v"))))
	store, err := parked.Open(ctx, url)
	testenv.Must(t, err)
	defer store.Close(ctx)
	all := busparked.Filter{}
	count := func(want int) func() error {
		return func() error {
			found, err := store.List(ctx, all, 100)
			if err == nil && len(found) != want {
				err = fmt.Errorf("%d are parked, want %d", len(found), want)
			}
			return err
		}
	}
	testenv.Eventually(t, count(4))
	found, err := store.Find(ctx, "test.two/test.store/0/1")
	if err != nil || found.Schema != "two" || found.Record.Header("ce_id") != "b" {
		t.Fatalf("found %+v, %v", found, err)
	}

	again := busparked.Filter{Group: "test.one"}
	if n, err := store.Replay(ctx, again); n != 2 || err != nil {
		t.Fatalf("asked for %d, %v", n, err)
	}
	if left, err := store.Await(ctx, again, testenv.Patience); err != nil || len(left) != 2 || left[0].Attempts != 2 || !left[0].AskedAt.IsZero() {
		t.Fatalf("a replay that fails leaves %+v, %v", left, err)
	}
	one.healed.Store(true)
	store.Replay(ctx, again)
	if left, err := store.Await(ctx, again, testenv.Patience); err != nil || len(left) != 0 || one.effect.Load() != 2 || two.effect.Load() != 0 {
		t.Fatalf("left %+v, %v; effects %d and %d", left, err, one.effect.Load(), two.effect.Load())
	}
	if n, err := store.Discard(ctx, busparked.Filter{Group: "test.two"}); n != 2 || err != nil {
		t.Fatalf("discarded %d, %v", n, err)
	}
	if err := count(0)(); err != nil {
		t.Error(err)
	}
	if _, err := store.Find(ctx, "test.two/test.store/0/1"); !errors.Is(err, parked.ErrNone) {
		t.Errorf("error is %v", err)
	}
}

// A database without modules is an error that names it.
func TestStoreWithoutModules(t *testing.T) {
	store, err := parked.Open(t.Context(), postgrestest.URL(t))
	testenv.Must(t, err)
	defer store.Close(t.Context())
	if _, err := store.List(t.Context(), busparked.Filter{}, 1); err == nil || !strings.Contains(err.Error(), "no module of Weir") {
		t.Errorf("error is %v", err)
	}
}

func TestIDs(t *testing.T) {
	f, err := parked.ParseID("a/group/weir.logs.v1/3/1041")
	if err != nil || f.Group != "a/group" || f.Topic != "weir.logs.v1" || *f.Partition != 3 || *f.Offset != 1041 {
		t.Errorf("read %+v, %v", f, err)
	}
	for _, wrong := range []string{"", "weir.logs.v1/3/1041", "g/t/x/1", "g/t/1/"} {
		if _, err := parked.ParseID(wrong); err == nil {
			t.Errorf("%q is taken for an id", wrong)
		}
	}
}

// A record's content reaches a terminal as text and never as a command;
// a golden file shows the whole.
func TestDetailsAreSafe(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := parked.Record{Schema: "ledger", Item: busparked.Item{
		Group: "ledger.quota", Organization: "org_1", Reason: "cannot read it:\n\x1b[2J\x1b]0;owned\x07", Attempts: 2, ParkedAt: now.Add(-3 * time.Hour),
		FailedAt: now.Add(-90 * time.Second), AskedAt: now.Add(-5 * time.Second),
		Record: bus.Record{
			Topic: "weir.logs.v1", Partition: 3, Offset: 1041, Key: []byte("key\x00\r"), Time: now.Add(-4 * time.Hour),
			Value:   []byte("{\"message\":\"caf\u00e9 \u202edlrow\u009b31m\"}\n\xff\\x1b" + strings.Repeat("x", 100)),
			Headers: []bus.Header{{Key: "ce_id\n", Value: []byte("a\tb")}},
		},
	}}
	var out strings.Builder
	testenv.Must(t, errors.Join(parked.Table(&out, []parked.Record{r}, now), parked.Details(&out, r, now, 60)))
	golden := filepath.Join("testdata", "details.txt")
	if *update {
		testenv.Must(t, errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, []byte(out.String()), 0o644)))
	}
	want, err := os.ReadFile(golden)
	if err != nil || out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s\n%v", out.String(), want, err)
	}
	for _, c := range out.String() {
		if c != '\n' && (c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e') {
			t.Fatalf("%q reaches the terminal", c)
		}
	}
}
