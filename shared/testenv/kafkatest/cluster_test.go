package kafkatest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv/fault/faulttest"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Each fault has its effect, and ends.
func TestFaults(t *testing.T) {
	cluster := kafkatest.Faulty(t, 1)
	createTopic(t, cluster.Brokers(), "test.kept")
	faulttest.Each(t, cluster.Nodes[0], func(ctx context.Context) error {
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
