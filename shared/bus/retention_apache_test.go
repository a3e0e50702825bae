//go:build apache

package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// If Apache Kafka's retention deletes what a consumer has never read,
// the consumer stops, names the offsets and the setting, and reads the
// rest once that is set.
func TestALogThatItsRetentionCut(t *testing.T) {
	brokers, topic, pool := forgetful(t), "test.retention", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, map[string]string{"cleanup.policy": "delete", "retention.ms": "1000"})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 10, 4)
	testenv.Eventually(t, bustest.Timeout, func() error {
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
	testenv.Eventually(t, bustest.Timeout, func() error {
		err := consumer.Ready()
		for _, part := range []string{bus.ErrNeverRead.Error(), topic, "partition 0", "offsets 0 to 9", "WEIR_ACCEPT_LOST_RECORDS"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				return fmt.Errorf("Ready does not name %q: %w", part, err)
			}
		}
		return nil
	})
	stop()
	bustest.Applied(t, pool, 0, bustest.Timeout)
	cfg.AcceptLost = true
	_, _ = bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 5, bustest.Timeout)
}

// forgetful starts a node that deletes old records within seconds.
func forgetful(t *testing.T) (brokers []string) {
	t.Helper()
	node, err := apache.Start(t.Context(), apache.Config{Dir: t.TempDir(), Brief: true, Forgets: true})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
