package server

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// Times with a meaning in ListOffsets.
const (
	latest   = -1
	earliest = -2
	newest   = -3
)

func (s *Server) listOffsets(_ *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range request.(*kmsg.ListOffsetsRequest).Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			found := kmsg.NewListOffsetsResponseTopicPartition()
			found.Partition = p.Partition
			var err error
			found.Offset, found.Timestamp, err = s.offsetAt(t.Topic, p)
			found.ErrorCode, found.LeaderEpoch = code(err), 0
			out.Partitions = append(out.Partitions, found)
		}
		response.Topics = append(response.Topics, out)
	}
	return response, nil
}

func (s *Server) offsetAt(topic string, p kmsg.ListOffsetsRequestTopicPartition) (offset, at int64, err error) {
	log, err := s.partition(topic, p.Partition)
	if err != nil {
		return -1, -1, err
	}
	if p.CurrentLeaderEpoch > 0 {
		return -1, -1, kerr.UnknownLeaderEpoch
	}
	start, end := log.Bounds()
	switch {
	case p.Timestamp == latest:
		return end, -1, nil
	case p.Timestamp == earliest:
		return start, -1, nil
	case p.Timestamp == newest:
		return log.Newest()
	case p.Timestamp < 0:
		return -1, -1, kerr.UnsupportedVersion
	}
	return log.At(p.Timestamp)
}

// partition returns a log that clients see.
func (s *Server) partition(topic string, partition int32) (*storage.Partition, error) {
	t := s.topic(topic)
	if t == nil {
		return nil, storage.ErrUnknownTopic
	}
	return t.Partition(partition)
}

// offsetForLeaderEpoch knows one epoch: the leader never changes.
func (s *Server) offsetForLeaderEpoch(_ *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range request.(*kmsg.OffsetForLeaderEpochRequest).Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			found := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			found.Partition, found.LeaderEpoch, found.EndOffset = p.Partition, -1, -1
			log, err := s.partition(t.Topic, p.Partition)
			if err == nil && p.LeaderEpoch == 0 {
				found.LeaderEpoch = 0
				_, found.EndOffset = log.Bounds()
			}
			found.ErrorCode = code(err)
			out.Partitions = append(out.Partitions, found)
		}
		response.Topics = append(response.Topics, out)
	}
	return response, nil
}

func (s *Server) deleteRecords(_ *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.DeleteRecordsResponse)
	for _, t := range request.(*kmsg.DeleteRecordsRequest).Topics {
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			done := kmsg.NewDeleteRecordsResponseTopicPartition()
			done.Partition, done.LowWatermark = p.Partition, -1
			log, err := s.partition(t.Topic, p.Partition)
			if err == nil {
				done.LowWatermark, err = log.DeleteBefore(p.Offset)
			}
			done.ErrorCode = code(err)
			out.Partitions = append(out.Partitions, done)
		}
		response.Topics = append(response.Topics, out)
	}
	return response, nil
}
