//go:build apache

package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// These tests kill nodes of an Apache Kafka of their own, from its jars; they need Java and a minute each:
//
//	go test -tags apache ./bus -run Apache

// node is one process of a cluster, broker and controller in one.
type node struct {
	id, port int
	dir      string
	jars     string
	cmd      *exec.Cmd
}

// startNodes makes a cluster of n nodes and returns when all of them are in it.
func startNodes(t *testing.T, n int) ([]*node, []string) {
	t.Helper()
	cache, err := apache.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	jars, err := apache.Jars(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node
	var voters, brokers []string
	for i := range n {
		nd := &node{id: i + 1, port: freePort(t), dir: t.TempDir(), jars: jars}
		nodes = append(nodes, nd)
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", nd.id, freePort(t)))
		brokers = append(brokers, fmt.Sprintf("127.0.0.1:%d", nd.port))
	}
	uuid := strings.TrimSpace(nodes[0].java(t, "kafka.tools.StorageTool", "random-uuid"))
	for i, nd := range nodes {
		nd.configure(t, voters, strings.SplitAfter(voters[i], "@")[1])
		nd.java(t, "kafka.tools.StorageTool", "format", "-t", uuid, "-c", nd.file("server.properties"))
		nd.start(t)
	}
	alive(t, brokers, n)
	return nodes, brokers
}

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

func (n *node) configure(t *testing.T, voters []string, controller string) {
	t.Helper()
	copies := min(3, len(voters))
	lines := []string{
		"process.roles=broker,controller", fmt.Sprintf("node.id=%d", n.id), "controller.quorum.voters=" + strings.Join(voters, ","),
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://%s", n.port, controller),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:%d", n.port),
		"controller.listener.names=CONTROLLER", "log.dirs=" + n.file("data"),
		fmt.Sprintf("offsets.topic.replication.factor=%d", copies), "offsets.topic.num.partitions=5",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", copies), "transaction.state.log.min.isr=1",
		"group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false",
		"broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500", "replica.lag.time.max.ms=5000",
	}
	if err := os.WriteFile(n.file("server.properties"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n *node) java(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("java", append([]string{"-Xmx128m", "-cp", filepath.Join(n.jars, "*")}, args...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, complaints.Bytes())
	}
	return string(out)
}

func (n *node) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(n.file("server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n.cmd = exec.Command("java", "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-cp", filepath.Join(n.jars, "*"),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "kafka.Kafka", n.file("server.properties"))
	n.cmd.Stdout, n.cmd.Stderr = log, log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.kill)
}

func (n *node) kill() {
	n.cmd.Process.Kill()
	n.cmd.Wait()
}

// alive waits until n brokers are in the cluster and all partitions have all their replicas in sync.
func alive(t *testing.T, brokers []string, n int) {
	t.Helper()
	testenv.Eventually(t, 2*time.Minute, func() error {
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

// layout asks the first broker that answers, without anything cached.
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
func leader(t *testing.T, nodes []*node, brokers []string, topic string) *node {
	t.Helper()
	var found *node
	testenv.Eventually(t, time.Minute, func() error {
		seen, err := layout(brokers)
		if err != nil {
			return err
		}
		for _, tp := range seen.Topics {
			if tp.Name != topic {
				continue
			}
			for _, n := range nodes {
				if tp.Partitions[0].Leader.Port == n.port {
					found = n
					return nil
				}
			}
		}
		return errors.New("no leader")
	})
	return found
}

func moreConfirmed(t *testing.T, tr *traffic, n int) {
	t.Helper()
	goal := tr.confirmed() + n
	testenv.Eventually(t, 2*time.Minute, func() error {
		if got := tr.confirmed(); got < goal {
			return fmt.Errorf("%d messages written, want %d", got, goal)
		}
		return nil
	})
}

// The leader of three nodes is killed again and again while messages are published and consumed: nothing that was confirmed is lost,
// nothing is in the log twice, nothing takes effect twice, the order of each key holds.
func TestApacheLeaderKilled(t *testing.T) {
	nodes, brokers := startNodes(t, 3)
	topic, pool := "test.leader", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 3, nil)
	startConsumer(t, quick(brokers, topic, pool, writeEffects))
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers, RequestTimeout: 5 * time.Second, DeliveryTimeout: 2 * time.Minute})
	tr := startTraffic(p, topic, 8, 2*time.Millisecond)
	for range rounds(t, 3) {
		moreConfirmed(t, tr, 200)
		victim := leader(t, nodes, brokers, topic)
		victim.kill()
		moreConfirmed(t, tr, 200)
		victim.start(t)
		alive(t, brokers, 3)
	}
	tr.stop()
	log := readAll(t, brokers, topic)
	if repeated := tr.audit(t, log); repeated > 0 {
		t.Errorf("%d records are in the log more than once", repeated)
	}
	applied(t, pool, len(log), 2*patience)
}

// With two of three nodes down nothing is accepted and every caller is told; when they are back everything goes on by itself.
func TestApacheMajorityDown(t *testing.T) {
	nodes, brokers := startNodes(t, 3)
	topic := "test.majority"
	ensure(t, brokers, topic, 3, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers, RequestTimeout: 2 * time.Second, DeliveryTimeout: 4 * time.Second})
	tr := startTraffic(p, topic, 8, 2*time.Millisecond)
	moreConfirmed(t, tr, 200)
	nodes[0].kill()
	nodes[1].kill()
	testenv.Eventually(t, time.Minute, func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if len(tr.refused)+len(tr.unknown) < 16 {
			return fmt.Errorf("%d not written, %d unknown", len(tr.refused), len(tr.unknown))
		}
		return nil
	})
	nodes[0].start(t)
	nodes[1].start(t)
	moreConfirmed(t, tr, 500)
	tr.stop()
	alive(t, brokers, 3)
	if repeated := tr.audit(t, readAll(t, brokers, topic)); repeated > 0 {
		t.Errorf("%d records are in the log more than once", repeated)
	}
}

// A single node is killed again and again while messages are on their way: Apache Kafka rebuilds what it knew of producers, so that
// nothing is in the log twice.
func TestApacheNodeKilled(t *testing.T) {
	nodes, brokers := startNodes(t, 1)
	topic := "test.node"
	ensure(t, brokers, topic, 3, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers, RequestTimeout: 5 * time.Second, DeliveryTimeout: 2 * time.Minute})
	tr := startTraffic(p, topic, 16, time.Millisecond)
	for range rounds(t, 3) {
		moreConfirmed(t, tr, 500)
		nodes[0].kill()
		nodes[0].start(t)
	}
	moreConfirmed(t, tr, 500)
	tr.stop()
	if repeated := tr.audit(t, readAll(t, brokers, topic)); repeated > 0 {
		t.Errorf("%d records are in the log more than once", repeated)
	}
}
