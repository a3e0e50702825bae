package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/port"
)

// A Cluster is a Kafka with faults.
type Cluster struct{ Nodes []*fault.Server }

// Brokers are the addresses for clients: those of the nodes' networks.
func (c *Cluster) Brokers() []string {
	var addresses []string
	for _, n := range c.Nodes {
		addresses = append(addresses, n.Address())
	}
	return addresses
}

// Faulty gives the test a cluster of its own, of so many nodes, without
// topics: an embedded broker in its own process, Apache Kafka from its
// jars, or a container, depending on the run. Several nodes are always
// Apache Kafka. With nodes from WEIR_TEST_BROKERS, only the networks
// before them can have faults.
//
// All faults are healed when the test ends. Tests with faults take
// turns, parallel or not: one that also needs a shared server asks for
// it after this.
func Faulty(t testing.TB, nodes int) *Cluster {
	t.Helper()
	fault.Turn(t)
	servers, where, err := nodesOf(nodes)
	if err != nil {
		t.Fatalf("testenv: no Kafka of %d nodes that faults can be done to: %v", nodes, err)
	}
	backend.Announce("Kafka for faults", where)
	networks, err := NewNetworks(servers.addresses)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	c := &Cluster{}
	for i, n := range networks {
		c.Nodes = append(c.Nodes, fault.NewServer("Kafka at "+servers.addresses[i], n, servers.processes[i]))
	}
	fault.HealAtEnd(t, servers.end, c.Nodes...)
	return c
}

// nodeSet is the nodes of a cluster, without networks.
type nodeSet struct {
	addresses []string
	processes []fault.Process
	end       func() error // nil: they outlive the test
}

func nodesOf(nodes int) (set nodeSet, where string, err error) {
	if brokers := backend.Given(testenv.EnvBrokers); brokers != "" {
		set, err = givenNodes(strings.Split(brokers, ","), nodes)
		return set, "given by " + testenv.EnvBrokers, err
	}
	switch b := backend.Chosen(); {
	case b == "containers" && nodes == 1:
		set, err = containerNode()
		return set, "container of " + apache.Image(), err
	case b == "machine" && nodes == 1:
		set, err = embeddedNode()
		return set, "embedded broker in a process of its own", err
	case b == "machine" || b == "kafka" || b == "containers":
		return apacheNodes(nodes)
	default:
		return nodeSet{}, "", backend.ErrUnknown()
	}
}

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

// containerNode is a one-node Kafka in a container.
func containerNode() (nodeSet, error) {
	port, err := port.Free()
	if err != nil {
		return nodeSet{}, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p, err := backend.RunContainer(apache.Image(), 9092, port, apache.ContainerSettings(port), func(ctx context.Context) error { return ping(ctx, address) })
	if err != nil {
		return nodeSet{}, err
	}
	return nodeSet{[]string{address}, []fault.Process{p}, p.Remove}, nil
}
