package server

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
)

// groups handles requests about consumer groups.
type groups struct {
	*group.Coordinator
	catalog
}

// twoSteps is the version of JoinGroup from which on a new member is
// given its id before it joins.
const twoSteps = 4

func (s groups) joinGroup(c *call, request kmsg.Request) (kmsg.Response, error) {
	r := request.(*kmsg.JoinGroupRequest)
	join := group.Join{
		Group: r.Group, Member: r.MemberID, ClientID: c.clientID, Host: "/" + c.host(), ProtocolType: r.ProtocolType, TwoSteps: r.Version >= twoSteps,
		Session: time.Duration(r.SessionTimeoutMillis) * time.Millisecond, Rebalance: time.Duration(r.RebalanceTimeoutMillis) * time.Millisecond,
	}
	for _, p := range r.Protocols {
		join.Protocols = append(join.Protocols, group.Protocol{Name: p.Name, Metadata: p.Metadata})
	}
	joined := s.Join(join)
	response := request.ResponseKind().(*kmsg.JoinGroupResponse)
	response.ErrorCode, response.MemberID, response.Generation = code(joined.Err), joined.Member, joined.Generation
	response.LeaderID, response.Protocol = joined.Leader, kmsg.StringPtr(joined.Protocol)
	if joined.Err != nil {
		response.Generation = -1
	}
	if joined.ProtocolType != "" {
		response.ProtocolType = kmsg.StringPtr(joined.ProtocolType)
	}
	for _, m := range joined.Members {
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID, member.ProtocolMetadata = m.ID, m.Metadata
		response.Members = append(response.Members, member)
	}
	return response, nil
}

func (s groups) syncGroup(r *kmsg.SyncGroupRequest, response *kmsg.SyncGroupResponse) {
	assignments := make(map[string][]byte, len(r.GroupAssignment))
	for _, a := range r.GroupAssignment {
		assignments[a.MemberID] = a.MemberAssignment
	}
	synced := s.Sync(r.Group, r.MemberID, r.Generation, assignments)
	response.ErrorCode, response.MemberAssignment = code(synced.Err), synced.Assignment
	if synced.Err == nil {
		response.ProtocolType, response.Protocol = kmsg.StringPtr(synced.ProtocolType), kmsg.StringPtr(synced.Protocol)
	}
}

func (s groups) heartbeat(r *kmsg.HeartbeatRequest, response *kmsg.HeartbeatResponse) {
	response.ErrorCode = code(s.Heartbeat(r.Group, r.MemberID, r.Generation))
}

func (s groups) leaveGroup(r *kmsg.LeaveGroupRequest, response *kmsg.LeaveGroupResponse) {
	if r.Version < 3 {
		response.ErrorCode = code(s.Leave(r.Group, r.MemberID))
		return
	}
	for _, m := range r.Members {
		left := kmsg.NewLeaveGroupResponseMember()
		left.MemberID, left.InstanceID = m.MemberID, m.InstanceID
		left.ErrorCode = code(s.Leave(r.Group, m.MemberID))
		response.Members = append(response.Members, left)
	}
}

// maxMetadataBytes is the most that a client may note beside an offset.
const maxMetadataBytes = 4096

func (s groups) offsetCommit(r *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse) {
	offsets, refused := map[group.Place]group.Offset{}, map[group.Place]error{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			place, offset := group.Place{Topic: t.Topic, Partition: p.Partition}, group.Offset{At: p.Offset, Epoch: p.LeaderEpoch}
			if p.Metadata != nil {
				offset.Metadata = *p.Metadata
			}
			_, err := s.partition(t.Topic, p.Partition)
			if len(offset.Metadata) > maxMetadataBytes {
				err = kerr.OffsetMetadataTooLarge
			}
			if refused[place] = err; err == nil {
				offsets[place] = offset
			}
		}
	}
	err := s.Commit(r.Group, r.MemberID, r.Generation, offsets)
	for _, t := range r.Topics {
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			done := kmsg.NewOffsetCommitResponseTopicPartition()
			done.Partition, done.ErrorCode = p.Partition, code(err)
			if own := refused[group.Place{Topic: t.Topic, Partition: p.Partition}]; own != nil {
				done.ErrorCode = code(own)
			}
			out.Partitions = append(out.Partitions, done)
		}
		response.Topics = append(response.Topics, out)
	}
}

func (s groups) describeGroups(asked *kmsg.DescribeGroupsRequest, response *kmsg.DescribeGroupsResponse) {
	for _, name := range asked.Groups {
		d, _ := s.Describe(name)
		out := kmsg.NewDescribeGroupsResponseGroup()
		out.Group, out.State, out.ProtocolType, out.Protocol = d.Name, d.State, d.ProtocolType, d.Protocol
		for _, m := range d.Members {
			member := kmsg.NewDescribeGroupsResponseGroupMember()
			member.MemberID, member.ClientID, member.ClientHost = m.ID, m.ClientID, m.Host
			member.ProtocolMetadata, member.MemberAssignment = m.Metadata, m.Assignment
			out.Members = append(out.Members, member)
		}
		response.Groups = append(response.Groups, out)
	}
}

func (s groups) listGroups(asked *kmsg.ListGroupsRequest, response *kmsg.ListGroupsResponse) {
	wanted := map[string]bool{}
	for _, state := range asked.StatesFilter {
		wanted[state] = true
	}
	for _, g := range s.List() {
		if len(wanted) > 0 && !wanted[g.State] {
			continue
		}
		out := kmsg.NewListGroupsResponseGroup()
		out.Group, out.ProtocolType, out.GroupState = g.Name, g.ProtocolType, g.State
		response.Groups = append(response.Groups, out)
	}
}

func (s groups) deleteGroups(asked *kmsg.DeleteGroupsRequest, response *kmsg.DeleteGroupsResponse) {
	for _, name := range asked.Groups {
		out := kmsg.NewDeleteGroupsResponseGroup()
		out.Group, out.ErrorCode = name, code(s.Delete(name))
		response.Groups = append(response.Groups, out)
	}
}

// severalGroups is the version of OffsetFetch from which on it is about
// several groups.
const severalGroups = 8

func (s groups) offsetFetch(r *kmsg.OffsetFetchRequest, response *kmsg.OffsetFetchResponse) {
	if r.Version < severalGroups {
		wanted := map[string][]int32{}
		for _, t := range r.Topics {
			wanted[t.Topic] = append(wanted[t.Topic], t.Partitions...)
		}
		if r.Topics == nil {
			wanted = nil
		}
		response.Topics = s.oneGroup(r.Group, wanted)
		return
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
}

// oneGroup returns the offsets that a group has committed; -1 where it
// has none. Wanted is nil for all it has.
func (s groups) oneGroup(name string, wanted map[string][]int32) (topics []kmsg.OffsetFetchResponseTopic) {
	offsets := s.Offsets(name)
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
