package kafkatest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A test finds no topic of another test, and its subtests share its broker.
func TestBrokerIsEmpty(t *testing.T) {
	for range 2 {
		t.Run("round", func(t *testing.T) {
			brokers := kafkatest.Brokers(t)
			if again := kafkatest.Brokers(t); again[0] != brokers[0] {
				t.Errorf("asked again, got %v instead of %v", again, brokers)
			}
			createTopic(t, brokers, "weir.logs.v1")
		})
	}
}

// createTopic fails if the topic exists.
func createTopic(t *testing.T, brokers []string, name string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	testenv.Must(t, err)
	defer client.Close()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), client)
	testenv.Must(t, err)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		t.Errorf("cannot create %s on an empty broker: code %d", name, code)
	}
}

// Each fault has its effect, and ends.
func TestFaults(t *testing.T) {
	cluster := kafkatest.Faulty(t, 1)
	createTopic(t, cluster.Brokers(), "test.kept")
	cluster.Nodes[0].TryEach(t, func(ctx context.Context) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Brokers()...), kgo.DisableClientMetrics(), kgo.RequestTimeoutOverhead(time.Second))
		if err != nil {
			return err
		}
		defer client.Close()
		return throughTheNetwork(ctx, client, cluster.Brokers()[0])
	})
}

// throughTheNetwork checks that the advertised addresses of the brokers
// and of a group's coordinator are the network's.
func throughTheNetwork(ctx context.Context, client *kgo.Client, want string) error {
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if b := metadata.Brokers[0]; fmt.Sprintf("%s:%d", b.Host, b.Port) != want {
		return fmt.Errorf("the broker is at %s:%d, want %s", b.Host, b.Port, want)
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = "test.group", []string{"test.group"}
	found, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if len(found.Coordinators) != 1 || fmt.Sprintf("%s:%d", found.Coordinators[0].Host, found.Coordinators[0].Port) != want {
		return fmt.Errorf("the coordinators are %+v, want one at %s", found.Coordinators, want)
	}
	if answer := client.ProduceSync(ctx, &kgo.Record{Topic: "test.kept", Value: []byte("x")}); answer.FirstErr() != nil {
		return answer.FirstErr()
	}
	return nil
}
