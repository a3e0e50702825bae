package service

import (
	"context"

	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Logs are those that the consumers of NewConsumer apply.
type Logs struct{ consumers []*consumer.Consumer }

// Watch compares the positions of all consumers with their logs until
// ctx ends.
func (l *Logs) Watch(ctx context.Context) error {
	var watches []func(context.Context) error
	for _, c := range l.consumers {
		watches = append(watches, c.WatchLog)
	}
	return lifecycle.Run(ctx, watches...)
}

// Intact returns nil while no consumer has a position beyond the end of
// its log: see consumer.LogIntact. New offsets would come twice.
func (l *Logs) Intact() error {
	for _, c := range l.consumers {
		if err := c.LogIntact(); err != nil {
			return err
		}
	}
	return nil
}
