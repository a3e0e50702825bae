package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A Cluster is what the brokers answered at one instant.
type Cluster struct {
	Brokers map[int32]string // addresses by id
	Topics  map[string]Topic // bounded by those asked for
}

// A Topic is a topic's state, or why it can't be seen.
type Topic struct {
	ID         [16]byte
	Partitions []Partition
	Settings   map[string]string // by the brokers' names
	Operations Operations
	Err        error
}

// A Partition is a partition's log and its replicas.
type Partition struct {
	Led              bool // it has a leader
	Replicas, InSync int
	Start, End       int64
}

// Reach connects to one broker, negotiates the protocol's versions
// and signs in.
func Reach(ctx context.Context, address string, dialer *bus.Dialer) error {
	conn, err := broker.Connect(ctx, broker.NewCluster(nil, dialer).Dialer, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Look asks for topics and some of their settings. It fails if no
// broker answers; a topic that can't be seen has its own error.
func Look(ctx context.Context, brokers []string, dialer *bus.Dialer, topics, settings []string) (Cluster, error) {
	c := broker.NewCluster(brokers, dialer)
	seen, err := c.Permitted(ctx, topics...)
	if err != nil {
		return Cluster{}, err
	}
	found := Cluster{Brokers: seen.Brokers, Topics: map[string]Topic{}}
	for _, name := range topics {
		topic := topicOf(seen.Topics[name])
		if topic.Err == nil {
			topic.Err = describe(ctx, c, name, settings, &topic)
		}
		found.Topics[name] = topic
	}
	return found, nil
}

func topicOf(layout broker.TopicLayout) Topic {
	topic := Topic{ID: layout.ID, Operations: Operations(layout.Operations), Err: layout.Err}
	for i, leader := range layout.Leaders {
		topic.Partitions = append(topic.Partitions, Partition{Led: leader >= 0, Replicas: layout.Replicas[i], InSync: layout.InSync[i]})
	}
	return topic
}

// describe adds settings, and the bounds of the partitions that have a leader.
func describe(ctx context.Context, c *broker.Cluster, name string, settings []string, topic *Topic) error {
	described, err := c.Describe(ctx, []string{name}, settings)
	if err != nil {
		return err
	}
	topic.Settings = described[name]
	var led []int
	for p, partition := range topic.Partitions {
		if partition.Led {
			led = append(led, p)
		}
	}
	logs, err := c.AllLogs(ctx, name, led)
	if err != nil {
		return fmt.Errorf("cannot read where %s ends: %w", name, err)
	}
	for p, bounds := range logs.Bounds {
		topic.Partitions[p].Start, topic.Partitions[p].End = bounds.Start, bounds.End
	}
	return nil
}

// Members counts the running members of consumer groups.
func Members(ctx context.Context, brokers []string, dialer *bus.Dialer, groups []string) (map[string]int, error) {
	c := broker.NewCluster(brokers, dialer)
	found := map[string]int{}
	for _, group := range groups {
		members, err := membersOf(ctx, c, group)
		if err != nil {
			return nil, fmt.Errorf("cannot see who is in the group %q (ACL: Describe): %w", group, err)
		}
		found[group] = members
	}
	return found, nil
}

// membersOf retries until the coordinator is found: brokers that just
// started create the topic of groups first.
func membersOf(ctx context.Context, c *broker.Cluster, group string) (n int, err error) {
	const tries, pause = 20, 500 * time.Millisecond
	for range tries {
		if n, err = askMembers(ctx, c, group); !isStarting(err) {
			return n, err
		}
		lifecycle.Pause(ctx, pause)
	}
	return n, err
}

func isStarting(err error) bool {
	return errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.GroupLoadInProgress) || errors.Is(err, kafka.NotCoordinatorForGroup)
}

func askMembers(ctx context.Context, c *broker.Cluster, group string) (int, error) {
	answer, err := c.Ask(ctx, &findcoordinator.Request{Key: group})
	if err != nil {
		return 0, err
	}
	at := answer.(*findcoordinator.Response)
	if at.ErrorCode != 0 {
		return 0, kafka.Error(at.ErrorCode)
	}
	err = c.On(ctx, net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port))), func(conn *broker.Connection) (err error) {
		answer, err = conn.RoundTrip(ctx, broker.RequestTimeout, &describegroups.Request{Groups: []string{group}})
		return err
	})
	if err != nil {
		return 0, err
	}
	members := 0
	for _, seen := range answer.(*describegroups.Response).Groups {
		if seen.ErrorCode != 0 {
			return 0, kafka.Error(seen.ErrorCode)
		}
		members += len(seen.Members)
	}
	return members, nil
}
