package server

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// topics handles requests about topics and their settings.
type topics struct {
	catalog
	groups *group.Coordinator
}

// maxPartitions is the most that a topic can have.
const maxPartitions = 10_000

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (s topics) createTopics(asked *kmsg.CreateTopicsRequest, response *kmsg.CreateTopicsResponse) {
	for _, t := range asked.Topics {
		out := kmsg.NewCreateTopicsResponseTopic()
		out.Topic = t.Topic
		made, err := s.createTopic(t, asked.ValidateOnly)
		out.ErrorCode, out.ErrorMessage = code(err), text(err)
		if made != nil {
			out.TopicID = made.ID
			out.NumPartitions, out.ReplicationFactor = int32(len(made.Partitions())), 1 //nolint:gosec // see maxPartitions
			for _, c := range settingsOf(made, nil) {
				config := kmsg.NewCreateTopicsResponseTopicConfig()
				config.Name, config.Value, config.Source = c.name, c.value, int8(c.source)
				out.Configs = append(out.Configs, config)
			}
		}
		response.Topics = append(response.Topics, out)
	}
}

func (s topics) createTopic(t kmsg.CreateTopicsRequestTopic, validateOnly bool) (*storage.Topic, error) {
	partitions := t.NumPartitions
	if partitions == -1 {
		partitions = max(1, int32(len(t.ReplicaAssignment))) //nolint:gosec // a request is not that long
	}
	settings := map[string]string{}
	for _, c := range t.Configs {
		if c.Value == nil {
			continue
		}
		if err := storage.CheckSetting(c.Name, *c.Value); err != nil {
			return nil, fmt.Errorf("%w: %w", kerr.InvalidConfig, err)
		}
		settings[c.Name] = *c.Value
	}
	switch {
	case !topicName.MatchString(t.Topic) || t.Topic == "." || t.Topic == "..":
		return nil, fmt.Errorf("%w: %q", kerr.InvalidTopicException, t.Topic)
	case partitions < 1 || partitions > maxPartitions:
		return nil, fmt.Errorf("%w: %d, a topic has 1 to %d", kerr.InvalidPartitions, partitions, maxPartitions)
	case t.ReplicationFactor > 1:
		return nil, fmt.Errorf("%w: %d copies are wanted, there is one broker", kerr.InvalidReplicationFactor, t.ReplicationFactor)
	case s.Topic(t.Topic) != nil:
		return nil, fmt.Errorf("%w: %q", kerr.TopicAlreadyExists, t.Topic)
	case validateOnly:
		return nil, nil
	}
	return s.Create(t.Topic, int(partitions), settings)
}

func (s topics) deleteTopics(asked *kmsg.DeleteTopicsRequest, response *kmsg.DeleteTopicsResponse) {
	topics := asked.Topics
	if asked.Version < 6 {
		topics = nil
		for _, name := range asked.TopicNames {
			topics = append(topics, kmsg.DeleteTopicsRequestTopic{Topic: kmsg.StringPtr(name)})
		}
	}
	for _, t := range topics {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		found, err := s.TopicByID(t.TopicID), kerr.UnknownTopicID
		if t.Topic != nil {
			found, err = s.topic(*t.Topic), kerr.UnknownTopicOrPartition
		}
		if found == nil {
			out.ErrorCode = err.Code
		} else {
			out.Topic, out.TopicID = kmsg.StringPtr(found.Name), found.ID
			out.ErrorCode = code(s.deleteTopic(found))
		}
		response.Topics = append(response.Topics, out)
	}
}

func (s topics) deleteTopic(t *storage.Topic) error {
	if err := t.Delete(); err != nil {
		return err
	}
	return s.groups.ForgetTopic(t.Name)
}

func (s topics) createPartitions(asked *kmsg.CreatePartitionsRequest, response *kmsg.CreatePartitionsResponse) {
	for _, t := range asked.Topics {
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		err := s.growTopic(t.Topic, int(t.Count), asked.ValidateOnly)
		out.ErrorCode, out.ErrorMessage = code(err), text(err)
		response.Topics = append(response.Topics, out)
	}
}

func (s topics) growTopic(name string, to int, validateOnly bool) error {
	t := s.topic(name)
	switch {
	case t == nil:
		return kerr.UnknownTopicOrPartition
	case to <= len(t.Partitions()) || to > maxPartitions:
		return fmt.Errorf("%w: %q has %d, wanted are %d; a topic only grows, to %d at most", kerr.InvalidPartitions, name, len(t.Partitions()), to, maxPartitions)
	case validateOnly:
		return nil
	}
	return t.Grow(to)
}

// A setting, and where its value comes from.
type setting struct {
	name   string
	value  *string
	source kmsg.ConfigSource
}

// settingsOf returns a topic's settings with the names that are wanted;
// nil wants all.
func settingsOf(t *storage.Topic, wanted []string) (found []setting) {
	values, given := t.Defaults(), t.Settings()
	maps.Copy(values, given)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if wanted != nil && !slices.Contains(wanted, name) {
			continue
		}
		source := kmsg.ConfigSourceDefaultConfig
		if _, own := given[name]; own {
			source = kmsg.ConfigSourceDynamicTopicConfig
		}
		found = append(found, setting{name, kmsg.StringPtr(values[name]), source})
	}
	return found
}

func (s topics) describeConfigs(asked *kmsg.DescribeConfigsRequest, response *kmsg.DescribeConfigsResponse) {
	for _, r := range asked.Resources {
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		t, err := s.resource(r.ResourceType, r.ResourceName)
		out.ErrorCode, out.ErrorMessage = code(err), text(err)
		if t != nil {
			for _, found := range settingsOf(t, r.ConfigNames) {
				config := kmsg.NewDescribeConfigsResponseResourceConfig()
				config.Name, config.Value, config.Source = found.name, found.value, found.source
				config.IsDefault = found.source == kmsg.ConfigSourceDefaultConfig
				out.Configs = append(out.Configs, config)
			}
		}
		response.Resources = append(response.Resources, out)
	}
}

// resource returns the topic whose settings are meant; nil for the
// broker, which has none.
func (s topics) resource(kind kmsg.ConfigResourceType, name string) (*storage.Topic, error) {
	if kind == kmsg.ConfigResourceTypeBroker {
		return nil, nil
	}
	if kind != kmsg.ConfigResourceTypeTopic {
		return nil, kerr.InvalidRequest
	}
	t := s.topic(name)
	if t == nil {
		return nil, fmt.Errorf("%w: %q", kerr.UnknownTopicOrPartition, name)
	}
	return t, nil
}

// alterConfigs replaces all settings of a topic.
func (s topics) alterConfigs(asked *kmsg.AlterConfigsRequest, response *kmsg.AlterConfigsResponse) {
	for _, r := range asked.Resources {
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		changes := map[string]*string{}
		if t := s.topic(r.ResourceName); t != nil {
			for name := range t.Settings() {
				changes[name] = nil
			}
		}
		for _, c := range r.Configs {
			changes[c.Name] = c.Value
		}
		err := s.alter(r.ResourceType, r.ResourceName, changes, asked.ValidateOnly)
		out.ErrorCode, out.ErrorMessage = code(err), text(err)
		response.Resources = append(response.Resources, out)
	}
}

func (s topics) incrementalAlterConfigs(asked *kmsg.IncrementalAlterConfigsRequest, response *kmsg.IncrementalAlterConfigsResponse) {
	for _, r := range asked.Resources {
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		changes, err := changesOf(r.Configs)
		if err == nil {
			err = s.alter(r.ResourceType, r.ResourceName, changes, asked.ValidateOnly)
		}
		out.ErrorCode, out.ErrorMessage = code(err), text(err)
		response.Resources = append(response.Resources, out)
	}
}

func changesOf(configs []kmsg.IncrementalAlterConfigsRequestResourceConfig) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, c := range configs {
		switch c.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			changes[c.Name] = c.Value
		case kmsg.IncrementalAlterConfigOpDelete:
			changes[c.Name] = nil
		default:
			return nil, fmt.Errorf("%w: %s can be set or deleted, not changed in part", kerr.InvalidConfig, c.Name)
		}
	}
	return changes, nil
}

func (s topics) alter(kind kmsg.ConfigResourceType, name string, changes map[string]*string, validateOnly bool) error {
	t, err := s.resource(kind, name)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("%w: the embedded broker's own settings are those of its process", kerr.InvalidRequest)
	}
	for setting, value := range changes {
		if value == nil {
			continue
		}
		if err := storage.CheckSetting(setting, *value); err != nil {
			return fmt.Errorf("%w: %w", kerr.InvalidConfig, err)
		}
	}
	if validateOnly {
		return nil
	}
	return t.Set(changes)
}
