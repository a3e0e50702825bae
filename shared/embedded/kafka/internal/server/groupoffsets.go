package server

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
)

// severalGroups is the version of OffsetFetch from which on it is about
// several groups.
const severalGroups = 8

func (s *Server) offsetFetch(_ *call, request kmsg.Request) (kmsg.Response, error) {
	r := request.(*kmsg.OffsetFetchRequest)
	response := request.ResponseKind().(*kmsg.OffsetFetchResponse)
	if r.Version < severalGroups {
		wanted := map[string][]int32{}
		for _, t := range r.Topics {
			wanted[t.Topic] = append(wanted[t.Topic], t.Partitions...)
		}
		if r.Topics == nil {
			wanted = nil
		}
		response.Topics = s.oneGroup(r.Group, wanted)
		return response, nil
	}
	for _, g := range r.Groups {
		wanted := map[string][]int32{}
		for _, t := range g.Topics {
			wanted[t.Topic] = append(wanted[t.Topic], t.Partitions...)
		}
		if g.Topics == nil {
			wanted = nil
		}
		out := kmsg.NewOffsetFetchResponseGroup()
		out.Group = g.Group
		for _, t := range s.oneGroup(g.Group, wanted) {
			topic := kmsg.NewOffsetFetchResponseGroupTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition(p))
			}
			out.Topics = append(out.Topics, topic)
		}
		response.Groups = append(response.Groups, out)
	}
	return response, nil
}

// oneGroup returns the offsets that a group has committed; -1 where it
// has none. Wanted is nil for all it has.
func (s *Server) oneGroup(name string, wanted map[string][]int32) (topics []kmsg.OffsetFetchResponseTopic) {
	offsets := s.Groups.Offsets(name)
	if wanted == nil {
		wanted = map[string][]int32{}
		for _, place := range slices.SortedFunc(maps.Keys(offsets), byPartition) {
			wanted[place.Topic] = append(wanted[place.Topic], place.Partition)
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(wanted)) {
		out := kmsg.NewOffsetFetchResponseTopic()
		out.Topic = topic
		for _, partition := range wanted[topic] {
			p := kmsg.NewOffsetFetchResponseTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, -1, -1, kmsg.StringPtr("")
			if found, has := offsets[group.Place{Topic: topic, Partition: partition}]; has {
				p.Offset, p.LeaderEpoch, p.Metadata = found.At, found.Epoch, kmsg.StringPtr(found.Metadata)
			}
			out.Partitions = append(out.Partitions, p)
		}
		topics = append(topics, out)
	}
	return topics
}

func byPartition(a, b group.Place) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
