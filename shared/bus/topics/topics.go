package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createtopics"

	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Ensure creates missing topics, and returns when all have leaders.
// Existing ones stay unchanged. With three brokers or more a topic gets
// three replicas, and two must have a record before it is acknowledged:
// the brokers' default of one could lose acknowledged records. It
// retries until ctx ends, so brokers may start later.
func Ensure(ctx context.Context, brokers []string, topics []contract.Topic) error {
	return EnsureWith(ctx, brokers, nil, topics)
}

// EnsureWith is Ensure over connections with TLS or SASL.
func EnsureWith(ctx context.Context, brokers []string, dialer *kafka.Dialer, topics []contract.Topic) error {
	c := broker.NewCluster(brokers, dialer)
	for failures := 1; ; failures++ {
		missing, err := createMissing(ctx, c, topics)
		if err == nil && missing == 0 {
			return nil
		}
		var final *finalError
		if errors.As(err, &final) {
			return err
		}
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, time.Second))
		if ctx.Err() != nil {
			return fmt.Errorf("cannot ensure topics: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// finalError is not worth a retry.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// createMissing creates missing topics and returns how many topics
// were not usable.
func createMissing(ctx context.Context, c *broker.Cluster, topics []contract.Topic) (int, error) {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	seen, err := c.Layout(ctx, names...)
	if errors.Is(err, kafka.SASLAuthenticationFailed) {
		return 0, &finalError{err}
	}
	if err != nil {
		return 0, err
	}
	missing, unusable, err := missingOf(topics, seen)
	if err != nil || len(missing) == 0 {
		return unusable, err
	}
	return unusable, create(ctx, c, seen, &createtopics.Request{TimeoutMs: int32(broker.RequestTimeout.Milliseconds()), Topics: missing})
}

// missingOf are the requests for those of topics that are missing, and
// how many are not usable yet.
func missingOf(topics []contract.Topic, seen broker.Layout) (missing []createtopics.RequestTopic, unusable int, err error) {
	for _, t := range topics {
		found := seen.Topics[t.Name]
		var code kafka.Error
		if errors.As(found.Err, &code) && !code.Temporary() {
			return nil, 0, &finalError{fmt.Errorf("cannot use topic %q: %w", t.Name, code)}
		}
		if !usable(found) {
			unusable++
		}
		if errors.Is(found.Err, kafka.UnknownTopicOrPartition) {
			missing = append(missing, newTopicRequest(t, len(seen.Brokers)))
		}
	}
	return missing, unusable, nil
}

// usable reports whether every partition has a leader.
func usable(t broker.TopicLayout) bool {
	for _, leader := range t.Leaders {
		if leader < 0 {
			return false
		}
	}
	return t.Err == nil && len(t.Leaders) > 0
}

func newTopicRequest(t contract.Topic, brokers int) createtopics.RequestTopic {
	request := createtopics.RequestTopic{Name: t.Name, NumPartitions: int32(t.Partitions), ReplicationFactor: 1}
	if brokers >= 3 {
		request.ReplicationFactor = 3
		request.Configs = []createtopics.RequestConfig{{Name: "min.insync.replicas", Value: "2"}}
	}
	for name, value := range t.Config {
		request.Configs = append(request.Configs, createtopics.RequestConfig{Name: name, Value: value})
	}
	return request
}

// create asks the controller. A topic that another process created
// meanwhile is fine.
func create(ctx context.Context, c *broker.Cluster, seen broker.Layout, request *createtopics.Request) error {
	conn, err := broker.Connect(ctx, c.Dialer, seen.Brokers[seen.Controller])
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := conn.RoundTrip(ctx, 2*broker.RequestTimeout, request)
	if err != nil {
		return err
	}
	for _, t := range answer.(*createtopics.Response).Topics {
		code := kafka.Error(t.ErrorCode)
		if code == 0 || code == kafka.TopicAlreadyExists {
			continue
		}
		err := fmt.Errorf("cannot create topic %q: %w: %s", t.Name, code, t.ErrorMessage)
		if !code.Temporary() && code != kafka.InvalidReplicationFactor { // brokers may still be joining
			return &finalError{err}
		}
		return err
	}
	return nil
}
