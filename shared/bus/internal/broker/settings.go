package broker

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"
)

// TopicSettings are what a topic deletes, and when.
type TopicSettings struct {
	Compacted       bool          // by key only
	DeleteRetention time.Duration // how long the tombstone of a key is kept at least
}

// Memory returns how old a snapshot may be to be updated from the log:
// half the retention of tombstones, to allow for different clocks and
// for the reading itself.
func (t TopicSettings) Memory() time.Duration { return t.DeleteRetention / 2 }

// Settings asks for a topic's settings.
func (c *Cluster) Settings(ctx context.Context, topic string) (found TopicSettings, err error) {
	described, err := c.Describe(ctx, []string{topic}, []string{"cleanup.policy", "delete.retention.ms"})
	if err != nil {
		return found, err
	}
	settings := described[topic]
	found.Compacted = settings["cleanup.policy"] == "compact"
	if text, given := settings["delete.retention.ms"]; given {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return found, fmt.Errorf("cannot read delete.retention.ms of %q: %w", topic, err)
		}
		found.DeleteRetention = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	return found, nil
}

// Describe asks for settings of topics by the brokers' names.
func (c *Cluster) Describe(ctx context.Context, topics, names []string) (map[string]map[string]string, error) {
	const ofTopic = 2
	question := &describeconfigs.Request{}
	for _, topic := range topics {
		question.Resources = append(question.Resources, describeconfigs.RequestResource{ResourceType: ofTopic, ResourceName: topic, ConfigNames: names})
	}
	answer, err := c.Ask(ctx, question)
	if err != nil {
		return nil, fmt.Errorf("cannot read the settings of %q: %w", topics, err)
	}
	found := map[string]map[string]string{}
	for _, r := range answer.(*describeconfigs.Response).Resources {
		if r.ErrorCode != 0 {
			return nil, fmt.Errorf("cannot read the settings of %q: %w: %s", r.ResourceName, kafka.Error(r.ErrorCode), r.ErrorMessage)
		}
		found[r.ResourceName] = map[string]string{}
		for _, entry := range r.ConfigEntries {
			found[r.ResourceName][entry.ConfigName] = entry.ConfigValue
		}
	}
	return found, nil
}
