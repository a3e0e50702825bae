//go:build apache

package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// These tests kill nodes of an Apache Kafka of three, where a record is
// acknowledged once two have it (min.insync.replicas=2). They need Java
// and a minute, as parts of TestFaults: `make test-kafka` and `make
// test-faults` run them.

var clusterFaults = []faultTest{{"leader killed", leaderKilled}, {"majority down", majorityDown}}

// alive waits until the cluster has n brokers and all replicas are in sync.
func alive(t *testing.T, brokers []string, n int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		seen, err := layout(brokers)
		if err != nil {
			return err
		}
		if len(seen.Brokers) != n {
			return fmt.Errorf("%d brokers", len(seen.Brokers))
		}
		for _, topic := range seen.Topics {
			for _, p := range topic.Partitions {
				if len(p.Isr) != len(p.Replicas) {
					return fmt.Errorf("%s/%d has %d of %d replicas", topic.Name, p.ID, len(p.Isr), len(p.Replicas))
				}
			}
		}
		return nil
	})
}

// layout asks the first broker that answers, without a cache.
func layout(brokers []string) (*kafka.MetadataResponse, error) {
	err := errors.New("no broker")
	for _, b := range brokers {
		transport := &kafka.Transport{}
		client := &kafka.Client{Addr: kafka.TCP(b), Timeout: 2 * time.Second, Transport: transport}
		var seen *kafka.MetadataResponse
		if seen, err = client.Metadata(context.Background(), &kafka.MetadataRequest{}); err == nil {
			transport.CloseIdleConnections()
			return seen, nil
		}
		transport.CloseIdleConnections()
	}
	return nil, err
}

// leader is the node that leads partition 0 of a topic.
func leader(t *testing.T, cluster *kafkatest.Cluster, topic string) *fault.Server {
	t.Helper()
	var found *fault.Server
	testenv.Eventually(t, func() error {
		seen, err := layout(cluster.Brokers())
		if err != nil {
			return err
		}
		for _, tp := range seen.Topics {
			if tp.Name != topic {
				continue
			}
			at := tp.Partitions[0].Leader
			for _, n := range cluster.Nodes {
				if n.Address() == fmt.Sprintf("%s:%d", at.Host, at.Port) {
					found = n
					return nil
				}
			}
		}
		return errors.New("no leader")
	})
	return found
}

func threeNodes(t *testing.T, topic string) *scene {
	t.Helper()
	s := &scene{cluster: kafkatest.Faulty(t, 3), topic: topic, random: chance(t), pool: bustest.Database(t)}
	alive(t, s.brokers(), 3)
	bustest.Effects(t, s.pool)
	bustest.Ensure(t, s.brokers(), topic, 3, nil)
	bustest.StartConsumer(t, s.consumer())
	return s
}

// The leader of three nodes is killed repeatedly while messages are
// published and consumed: no confirmed message is lost, none is in the
// log twice or takes effect twice, and the order of each key holds.
func leaderKilled(t *testing.T) {
	s := threeNodes(t, "test.leader")
	p := bustest.NewPublisher(t, publisher.Config{Brokers: s.brokers(), RequestTimeout: 5 * time.Second, DeliveryTimeout: 2 * time.Minute})
	s.tr = startTraffic(p, s.topic, 8, 2*time.Millisecond)
	r := s.strike(t, "leader of three nodes killed", 1, 20, func() {
		victim := leader(t, s.cluster, s.topic)
		victim.Kill(t)
		s.tr.more(t, 100)
		victim.Start(t)
		alive(t, s.brokers(), 3)
	})
	if r.repeated > 0 {
		t.Errorf("%d records are in the log more than once", r.repeated)
	}
}

// With two of three nodes down nothing is accepted and every caller
// gets an error; when they return everything continues by itself.
func majorityDown(t *testing.T) {
	s := threeNodes(t, "test.majority")
	p := bustest.NewPublisher(t, publisher.Config{Brokers: s.brokers(), RequestTimeout: 2 * time.Second, DeliveryTimeout: 4 * time.Second})
	s.tr = startTraffic(p, s.topic, 8, 2*time.Millisecond)
	r := s.strike(t, "two of three nodes down", 1, 3, func() {
		told := s.tr.failed()
		s.cluster.Nodes[0].Kill(t)
		s.cluster.Nodes[1].Kill(t)
		testenv.Eventually(t, func() error {
			if n := s.tr.failed() - told; n < 16 {
				return fmt.Errorf("%d callers got an error that their message is not written, or may not be", n)
			}
			return nil
		})
		s.cluster.Nodes[0].Start(t)
		s.cluster.Nodes[1].Start(t)
		alive(t, s.brokers(), 3)
	})
	if r.repeated > 0 {
		t.Errorf("%d records are in the log more than once", r.repeated)
	}
}

// failed counts the messages not reported as written.
func (tr *traffic) failed() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.unknown) + len(tr.refused)
}

// If Apache Kafka's retention deletes what a consumer has never read,
// the consumer stops, names the offsets and the setting, and reads the
// rest once that is set.
func TestALogThatItsRetentionCut(t *testing.T) {
	brokers, topic, pool := forgetful(t), "test.retention", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, map[string]string{"cleanup.policy": "delete", "retention.ms": "1000"})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 10, 4)
	testenv.Eventually(t, func() error {
		_, bounds, err := (&logrange.Reader{Brokers: brokers, Topic: topic}).Bounds(t.Context())
		if err == nil && bounds[0].Start != 10 {
			err = fmt.Errorf("the log still begins at %d", bounds[0].Start)
		}
		return err
	})
	keep(t, brokers, topic)
	bustest.Publish(t, p, topic, 10, 5, 4)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	consumer, stop := bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, func() error {
		err := consumer.Ready()
		for _, part := range []string{bus.ErrNeverRead.Error(), topic, "partition 0", "offsets 0 to 9", "WEIR_ACCEPT_LOST_RECORDS"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				return fmt.Errorf("Ready does not name %q: %w", part, err)
			}
		}
		return nil
	})
	stop()
	bustest.Applied(t, pool, 0)
	cfg.AcceptLost = true
	_, _ = bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 5)
}

// forgetful starts a node that deletes old records within seconds.
func forgetful(t *testing.T) (brokers []string) {
	t.Helper()
	node, err := apache.Start(t.Context(), apache.Config{Dir: t.TempDir(), Brief: true, Forgets: true})
	testenv.Must(t, err)
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	return []string{node.Addr()}
}

// keep stops a topic from deleting its records.
func keep(t *testing.T, brokers []string, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	testenv.Must(t, err)
	defer client.Close()
	forever := "-1"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "retention.ms", &forever
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.Configs = kmsg.ConfigResourceTypeTopic, topic, append(resource.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(context.WithoutCancel(t.Context()), client)
	if err != nil || len(answer.Resources) != 1 || answer.Resources[0].ErrorCode != 0 {
		t.Fatalf("cannot keep the log: %+v, %v", answer, err)
	}
}
