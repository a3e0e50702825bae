package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }

// Topics are seen as they are, and a missing one hides no other.
func TestLook(t *testing.T) {
	brokers, topic := kafkatest.Shared(t), "test.cluster"
	bustest.Ensure(t, brokers, topic, 3, map[string]string{"cleanup.policy": "compact"})
	bustest.PublishAll(t, brokers, topic, bustest.Keyed(0, 7, 1)...)
	seen, err := cluster.Look(t.Context(), brokers, nil, []string{topic, "test.cluster.missing"}, []string{"cleanup.policy", "min.insync.replicas"})
	if err != nil || len(seen.Brokers) == 0 {
		t.Fatalf("%d brokers, %v", len(seen.Brokers), err)
	}
	found, records := seen.Topics[topic], int64(0)
	for _, p := range found.Partitions {
		if !p.Led || p.Replicas < 1 || p.InSync < 1 || p.Start != 0 {
			t.Errorf("partition %+v", p)
		}
		records += p.End
	}
	if found.Err != nil || len(found.Partitions) != 3 || records != 7 || found.ID == [16]byte{} {
		t.Errorf("topic %+v", found)
	}
	if found.Settings["cleanup.policy"] != "compact" || found.Settings["min.insync.replicas"] == "" {
		t.Errorf("settings %v", found.Settings)
	}
	if !found.Operations.Allow(cluster.Read|cluster.Write|cluster.Describe) || cluster.Operations(0).Allow(cluster.Read) {
		t.Errorf("operations %b", found.Operations)
	}
	if missing := seen.Topics["test.cluster.missing"]; !errors.Is(missing.Err, kafka.UnknownTopicOrPartition) {
		t.Errorf("missing topic: %v", missing.Err)
	}
	if err := cluster.Reach(t.Context(), brokers[0], nil); err != nil {
		t.Error(err)
	}
}

// A group's members are counted; a group that never had any has none.
func TestMembers(t *testing.T) {
	brokers, topic := kafkatest.Shared(t), "test.cluster.members"
	bustest.Ensure(t, brokers, topic, 1, nil)
	pool := bustest.Database(t)
	handle := func(context.Context, pgx.Tx, []bus.Record) error { return nil }
	cfg := bustest.QuickConsumer(brokers, topic, pool, handle)
	_, stop := bustest.StartConsumer(t, cfg)
	count := func(want int) {
		t.Helper()
		testenv.Eventually(t, func() error {
			found, err := cluster.Members(t.Context(), brokers, nil, []string{cfg.Group, "test.cluster.nobody"})
			if err == nil && (found[cfg.Group] != want || found["test.cluster.nobody"] != 0) {
				err = fmt.Errorf("members %v, want %d", found, want)
			}
			return err
		})
	}
	count(1)
	stop()
	count(0)
}

// There are no quotas that nobody has set.
func TestNoQuotas(t *testing.T) {
	if found, err := cluster.Quotas(t.Context(), kafkatest.Shared(t), nil); len(found) > 0 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
