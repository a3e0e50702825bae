package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/port"
)

// givenNodes finds the nodes of a given cluster, by their advertised addresses.
func givenNodes(brokers []string, want int) (nodeSet, error) {
	ctx, cancel := context.WithTimeout(context.Background(), backend.StartTime)
	defer cancel()
	addresses, err := advertised(ctx, brokers)
	if err == nil && len(addresses) < want {
		err = fmt.Errorf("%s gives %d nodes, the test needs %d", testenv.EnvBrokers, len(addresses), want)
	}
	if err != nil {
		return nodeSet{}, err
	}
	processes := slices.Repeat([]fault.Process{fault.Given(testenv.EnvBrokers)}, len(addresses))
	lease, err := openGiven(brokers)
	if err != nil {
		return nodeSet{}, err
	}
	return nodeSet{addresses, processes, lease.(givenLease).turn.Close}, nil
}

func advertised(ctx context.Context, brokers []string) ([]string, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DisableClientMetrics())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, b := range answer.Brokers {
		addresses = append(addresses, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	return addresses, nil
}

// apacheClusters of this process, by size: each takes seconds to start,
// so tests share them.
var apacheClusters struct {
	mu     sync.Mutex
	bySize map[int][]*apache.Broker
}

// apacheNodes returns a cluster without topics. Its processes end
// with this one.
func apacheNodes(size int) (nodeSet, string, error) {
	where := fmt.Sprintf("Apache Kafka %s from its jars, %d nodes", apache.Version, size)
	nodes, err := apacheCluster(size)
	if err != nil {
		return nodeSet{}, where, err
	}
	var set nodeSet
	for _, n := range nodes {
		set.addresses, set.processes = append(set.addresses, n.Addr()), append(set.processes, n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return set, where, sweep(ctx, set.addresses)
}

func apacheCluster(size int) ([]*apache.Broker, error) {
	apacheClusters.mu.Lock()
	defer apacheClusters.mu.Unlock()
	if nodes := apacheClusters.bySize[size]; nodes != nil {
		return nodes, nil
	}
	dir, err := testenv.Scratch("weir-test-kafka-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), backend.StartTime)
	defer cancel()
	nodes, err := apache.StartCluster(ctx, apache.Config{Dir: dir, Killable: true}, size)
	if err != nil {
		return nil, err
	}
	if apacheClusters.bySize == nil {
		apacheClusters.bySize = map[int][]*apache.Broker{}
	}
	apacheClusters.bySize[size] = nodes
	return nodes, nil
}

// embeddedNode starts this program once more, as a broker.
func embeddedNode() (nodeSet, error) {
	dir, err := testenv.Scratch("weir-test-broker-")
	if err != nil {
		return nodeSet{}, err
	}
	port, err := port.Free()
	if err != nil {
		return nodeSet{}, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	process, err := serveCommand(port, filepath.Join(dir, "data"))
	if err != nil {
		return nodeSet{}, err
	}
	process.Dir, process.Answer = dir, func(ctx context.Context) error { return ping(ctx, address) }
	if err := process.Start(); err != nil {
		return nodeSet{}, err
	}
	return nodeSet{[]string{address}, []fault.Process{process}, func() error {
		defer os.RemoveAll(dir)
		return process.Kill()
	}}, nil
}

func ping(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	soon := kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond })
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DisableClientMetrics(), soon)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}
