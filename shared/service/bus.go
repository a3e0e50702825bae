package service

import (
	"context"

	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
)

// EnsureTopics creates the service's own missing topics. It waits
// for the brokers.
func (b *Base) EnsureTopics(ctx context.Context, all []contract.Topic) error {
	return topics.EnsureWith(ctx, b.config.Brokers, b.Dialer, contract.OwnedBy(b.name, all))
}

// OpenPublisher opens Publisher, with the limits of config.
func (b *Base) OpenPublisher(config publisher.Config) (err error) {
	config.Brokers, config.Dialer, config.Metrics, config.Compression = b.config.Brokers, b.Dialer, b.Metrics, publisher.ZstdSmall
	b.Publisher, err = publisher.New(config, b.Logger)
	return err
}

// NewConsumer returns a consumer from the brokers into Pool.
func (b *Base) NewConsumer(config consumer.Config) (*consumer.Consumer, error) {
	config.Brokers, config.Dialer, config.Pool, config.Metrics = b.config.Brokers, b.Dialer, b.Pool, b.Metrics
	c, err := consumer.New(config, b.Logger)
	if err == nil {
		b.Logs.consumers = append(b.Logs.consumers, c)
	}
	return c, err
}

// Consumer completes the configuration of a consumer of weir.logs.v1, which
// never sees what is erased.
func (c LogsConfig) Consumer(config consumer.Config) consumer.Config {
	config.Topic, config.Erased, config.AcceptLost = contract.TopicLogs, erasure.IsErased, c.AcceptLostRecords
	return config
}

// NewRelay returns a relay from Pool to Publisher.
func (b *Base) NewRelay(config relay.Config) *relay.Relay {
	config.Pool, config.Publisher, config.Metrics = b.Pool, b.Publisher, b.Metrics
	return relay.New(config, b.Logger)
}
