package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
)

type topicsCommand struct {
	Brokers       []string      `help:"Kafka brokers, host:port." env:"WEIR_BROKERS" required:""`
	BrokerAccess  bus.Access    `embed:"" prefix:"brokers-"`
	LogPartitions int           `help:"Partitions of weir.logs.v1: how many consumers of one kind can share the work." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 keeps records. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`
	Timeout       time.Duration `help:"How long to wait for the brokers." default:"30s"`
}

// Help is called by kong.
func (topicsCommand) Help() string {
	return `Topics that are there stay as they are.

  WEIR_BROKERS=kafka-1.example:9092,kafka-2.example:9092 weir topics`
}

// Run creates missing topics.
func (c *topicsCommand) Run(ctx context.Context, _ *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	dialer, err := c.BrokerAccess.Dialer()
	if err != nil {
		return err
	}
	all := contract.Topics(c.LogPartitions, c.LogRetention)
	if err := topics.EnsureWith(ctx, c.Brokers, dialer, all); err != nil {
		return err
	}
	for _, topic := range all {
		fmt.Fprintf(os.Stdout, "%-20s %d partitions, unless it existed\n", topic.Name, topic.Partitions)
	}
	return nil
}
