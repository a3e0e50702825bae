package kafkatest

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
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
