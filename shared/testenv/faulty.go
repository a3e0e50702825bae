package testenv

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv/fault"
)

// A Cluster is a Kafka that faults can be done to.
type Cluster struct{ Nodes []*fault.Server }

// Brokers are the addresses of the nodes, as their clients are
// to have them: those of their networks.
func (c *Cluster) Brokers() []string {
	var addresses []string
	for _, n := range c.Nodes {
		addresses = append(addresses, n.Address())
	}
	return addresses
}

// A Database is one of the test's own on a PostgreSQL server
// that faults can be done to.
type Database struct {
	*fault.Server
	URL string // through the network
}

// A Cache is a database of the test's own on a Redis server that
// faults can be done to.
type Cache struct {
	*fault.Server
	URL string // through the network
}

// FaultyKafka gives the test a cluster of its own, of so many nodes,
// without topics: an embedded broker in a process of its own, Apache
// Kafka from its jars, or a container, as the run uses. Several nodes are
// always Apache Kafka. With nodes from WEIR_TEST_BROKERS, only the
// networks before them can be disturbed.
//
// All faults are healed when the test ends. Tests with faults take turns,
// parallel or not: one that also needs a shared server asks for it after this.
func FaultyKafka(t testing.TB, nodes int) *Cluster {
	t.Helper()
	turn(t)
	servers, where, err := kafkaServers(nodes)
	if err != nil {
		t.Fatalf("testenv: no Kafka of %d nodes that faults can be done to: %v", nodes, err)
	}
	announceOnce("Kafka for faults", where)
	networks, err := fault.NewKafkaNetworks(servers.addresses)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	c := &Cluster{}
	for i, n := range networks {
		c.Nodes = append(c.Nodes, fault.NewServer("Kafka at "+servers.addresses[i], n, servers.processes[i]))
	}
	heal(t, servers.end, c.Nodes...)
	return c
}

// FaultyPostgres gives the test a database of its own as Postgres does, on a
// server that no test without faults uses. Where only WEIR_TEST_DATABASE_URL
// names the server, only the network before it can be disturbed.
func FaultyPostgres(t testing.TB) *Database {
	t.Helper()
	turn(t)
	admin, process, where, err := databaseServer(t)
	if err != nil {
		t.Fatalf("testenv: no PostgreSQL that faults can be done to: %v", err)
	}
	announceOnce("PostgreSQL for faults", where)
	direct := newDatabase(t, admin)
	address, through := reroute(t, direct)
	server := fault.NewServer("PostgreSQL at "+address, through.network, process)
	heal(t, nil, server)
	return &Database{server, through.url}
}

// FaultyRedis gives the test a database of its own as Redis does, on a server
// that no test without faults uses. Where WEIR_TEST_REDIS_URL names the server,
// only the network before it can be disturbed.
func FaultyRedis(t testing.TB) *Cache {
	t.Helper()
	turn(t)
	direct, process, where, err := cacheServer(t)
	if err != nil {
		t.Fatalf("testenv: no Redis that faults can be done to: %v", err)
	}
	announceOnce("Redis for faults", where)
	address, through := reroute(t, direct)
	server := fault.NewServer("Redis at "+address, through.network, process)
	heal(t, nil, server)
	return &Cache{server, through.url}
}

// heal undoes the faults when the test ends, before end. What the servers
// of a failed test have logged may be why.
func heal(t testing.TB, end func() error, servers ...*fault.Server) {
	t.Cleanup(func() {
		for _, s := range servers {
			if words := s.LogTail(); t.Failed() && words != "" {
				t.Logf("%s: its log ends with\n%s", s.Name, words)
			}
			s.Network.Close()
			s.Heal(t)
			s.Network.Close()
		}
		if end == nil {
			return
		}
		if err := end(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
}

type rerouted struct {
	network *fault.Network
	url     string
}

// reroute puts a network before the server of a URL.
func reroute(t testing.TB, direct string) (address string, through rerouted) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal("testenv: the address of a server is not a URL") // it holds a password
	}
	address = u.Host
	network, err := fault.NewNetwork(address)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	u.Host = network.Address()
	return address, rerouted{network, u.String()}
}

// turns lets one top-level test at a time do faults: several
// would wonder what happens to their servers.
var turns = struct {
	mu      sync.Mutex
	holders register
}{holders: register{holds: map[string]*hold{}}}

type held struct{}

func (held) addresses() []string { return nil }
func (held) end(testing.TB)      { turns.mu.Unlock() }

func turn(t testing.TB) {
	t.Helper()
	turns.holders.acquire(t, topLevel(t), func() (lease, error) {
		turns.mu.Lock()
		return held{}, nil
	})
}

var announced sync.Map

// announceOnce is announce, once per package and server.
func announceOnce(what, where string) {
	if _, before := announced.LoadOrStore(what+where, true); !before {
		announce(what, where)
	}
}

// backend is what the run takes for its servers: machine, kafka (Apache Kafka,
// the rest from the machine), containers.
func backend() string { return cmp.Or(os.Getenv(EnvBackend), "machine") }

// given is a variable's value unless a server can be had in another way.
func given(variable string) string {
	if os.Getenv(EnvBackend) != "" {
		return ""
	}
	return os.Getenv(variable)
}

// kafkaSet are the nodes of a cluster, without networks.
type kafkaSet struct {
	addresses []string
	processes []fault.Process
	end       func() error // nil: they outlive the test
}

func kafkaServers(nodes int) (set kafkaSet, where string, err error) {
	if brokers := given(EnvBrokers); brokers != "" {
		set, err = givenNodes(strings.Split(brokers, ","), nodes)
		return set, "given by " + EnvBrokers, err
	}
	switch b := backend(); {
	case b == "containers" && nodes == 1:
		set, err = containerNode()
		return set, "container of " + KafkaImage(), err
	case b == "machine" && nodes == 1:
		set, err = embeddedNode()
		return set, "embedded broker in a process of its own", err
	case b == "machine" || b == "kafka" || b == "containers":
		return apacheNodes(nodes)
	default:
		return kafkaSet{}, "", errors.New(EnvBackend + " is " + b + ": it can be machine, kafka or containers")
	}
}
