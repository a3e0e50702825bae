package server

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

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

func (s *Server) describeConfigs(_ *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, r := range request.(*kmsg.DescribeConfigsRequest).Resources {
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
	return response, nil
}

// resource returns the topic whose settings are meant; nil for the
// broker, which has none.
func (s *Server) resource(kind kmsg.ConfigResourceType, name string) (*storage.Topic, error) {
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
func (s *Server) alterConfigs(_ *call, request kmsg.Request) (kmsg.Response, error) {
	asked := request.(*kmsg.AlterConfigsRequest)
	response := request.ResponseKind().(*kmsg.AlterConfigsResponse)
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
	return response, nil
}

func (s *Server) incrementalAlterConfigs(_ *call, request kmsg.Request) (kmsg.Response, error) {
	asked := request.(*kmsg.IncrementalAlterConfigsRequest)
	response := request.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
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
	return response, nil
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

func (s *Server) alter(kind kmsg.ConfigResourceType, name string, changes map[string]*string, validateOnly bool) error {
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
