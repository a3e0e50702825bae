package apache

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirlog/weir/shared/testenv/port"
)

// A node is the plan of a node before it starts.
type node struct {
	id         int
	addr       string // where clients connect, and the other nodes
	controller string
	signIn     string // where clients of users connect
	certified  string // where clients with certificates connect
	secured    *Secured
	voters     string // of all nodes: id@address,…
	copies     int    // of the broker's own topics
	dir        string
	heap       heap
	killable   bool
	brief      bool
	forgets    bool
}

// A heap is Java's memory.
type heap struct{ first, most string }

// quickStart are Java's options for a short life: half the work until
// it answers, less speed later.
var quickStart = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}

var (
	heapAlone   = heap{"256m", "1g"}
	heapOfThree = heap{"128m", "384m"} // there are several on one machine
)

// planCluster chooses ports and folders.
func planCluster(cfg Config, size int) ([]node, error) {
	addresses, err := freeAddresses(4 * size)
	if err != nil {
		return nil, err
	}
	nodes := make([]node, size)
	voters := make([]string, size)
	for i := range nodes {
		n := node{id: i + 1, addr: addresses[4*i], controller: addresses[4*i+1], signIn: addresses[4*i+2], certified: addresses[4*i+3],
			secured: cfg.Secured, copies: min(3, size), dir: cfg.Dir, heap: heapAlone, killable: cfg.Killable, brief: cfg.brief(), forgets: cfg.Forgets}
		if size > 1 {
			n.dir, n.heap = filepath.Join(cfg.Dir, strconv.Itoa(n.id)), heapOfThree
		}
		nodes[i], voters[i] = n, fmt.Sprintf("%d@%s", n.id, n.controller)
	}
	for i := range nodes {
		nodes[i].voters = strings.Join(voters, ",")
	}
	return nodes, nil
}

func freeAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		free, err := port.Free()
		if err != nil {
			return nil, err
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
	}
	return addresses, nil
}

func (n node) file(name string) string { return filepath.Join(n.dir, name) }

// clients returns the listeners for clients.
func (n node) clients() string {
	listeners := "PLAINTEXT://" + n.addr
	if n.secured != nil {
		listeners += fmt.Sprintf(",USERS://%s,CERTIFIED://%s", n.signIn, n.certified)
	}
	return listeners
}

// properties configures a node. Topics are not created automatically;
// groups form without delay.
func (n node) properties() string {
	lines := []string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", n.id),
		"controller.quorum.voters=" + n.voters,
		fmt.Sprintf("listeners=%s,CONTROLLER://%s", n.clients(), n.controller),
		"advertised.listeners=" + n.clients(),
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + n.file("data"),
		fmt.Sprintf("offsets.topic.replication.factor=%d", n.copies),
		"offsets.topic.num.partitions=5",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", n.copies),
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=5",
		"group.initial.rebalance.delay.ms=0",
		"group.min.session.timeout.ms=1000", // dead members are found as soon as a test wants
		"auto.create.topics.enable=false",
		"log.index.size.max.bytes=65536", // of each partition's two indexes, which are mapped whole when a topic is made
	}
	if n.killable {
		lines = append(lines, "broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500", "replica.lag.time.max.ms=5000")
	}
	if n.forgets {
		lines = append(lines, "log.retention.check.interval.ms=1000", "log.initial.task.delay.ms=1000")
	}
	return strings.Join(append(lines, n.secured.properties()...), "\n") + "\n"
}
