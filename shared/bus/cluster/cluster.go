package cluster

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
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
	defer c.Close()
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
