package server

import (
	"fmt"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// maxPartitions is the most that a topic can have.
const maxPartitions = 10_000

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (s *Server) createTopics(_ *call, request kmsg.Request) (kmsg.Response, error) {
	asked := request.(*kmsg.CreateTopicsRequest)
	response := request.ResponseKind().(*kmsg.CreateTopicsResponse)
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
	return response, nil
}

func (s *Server) createTopic(t kmsg.CreateTopicsRequestTopic, validateOnly bool) (*storage.Topic, error) {
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
	case s.Store.Topic(t.Topic) != nil:
		return nil, fmt.Errorf("%w: %q", kerr.TopicAlreadyExists, t.Topic)
	case validateOnly:
		return nil, nil
	}
	return s.Store.Create(t.Topic, int(partitions), settings)
}

func (s *Server) deleteTopics(_ *call, request kmsg.Request) (kmsg.Response, error) {
	asked := request.(*kmsg.DeleteTopicsRequest)
	response := request.ResponseKind().(*kmsg.DeleteTopicsResponse)
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
		found, err := s.Store.TopicByID(t.TopicID), kerr.UnknownTopicID
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
	return response, nil
}

func (s *Server) deleteTopic(t *storage.Topic) error {
	if err := t.Delete(); err != nil {
		return err
	}
	return s.Groups.ForgetTopic(t.Name)
}

func (s *Server) createPartitions(_ *call, request kmsg.Request) (kmsg.Response, error) {
	asked := request.(*kmsg.CreatePartitionsRequest)
	response := request.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, t := range asked.Topics {
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		err := s.growTopic(t.Topic, int(t.Count), asked.ValidateOnly)
		out.ErrorCode, out.ErrorMessage = code(err), text(err)
		response.Topics = append(response.Topics, out)
	}
	return response, nil
}

func (s *Server) growTopic(name string, to int, validateOnly bool) error {
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
