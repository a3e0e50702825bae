package server

import (
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// node is the id of the only broker.
const node = 0

func (s *Server) host() string { return s.address.IP.String() }
func (s *Server) port() int32  { return int32(s.address.Port) } //nolint:gosec // a port

func (s *Server) metadata(asked *kmsg.MetadataRequest, response *kmsg.MetadataResponse) {
	broker := kmsg.NewMetadataResponseBroker()
	broker.NodeID, broker.Host, broker.Port = node, s.host(), s.port()
	response.Brokers = append(response.Brokers, broker)
	response.ClusterID, response.ControllerID = kmsg.StringPtr(s.Store.Cluster()), node
	if asked.Topics == nil || asked.Version == 0 && len(asked.Topics) == 0 {
		for _, t := range s.Store.Topics() {
			if t.Name != OffsetsTopic {
				response.Topics = append(response.Topics, describe(t))
			}
		}
		return
	}
	for _, t := range asked.Topics {
		response.Topics = append(response.Topics, s.lookUp(t))
	}
}

// lookUp finds a topic by its name or its id.
func (s *Server) lookUp(asked kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	t, missing := s.Store.TopicByID(asked.TopicID), kerr.UnknownTopicID
	if asked.Topic != nil {
		t, missing = s.catalog.topic(*asked.Topic), kerr.UnknownTopicOrPartition
	}
	if t != nil {
		return describe(t)
	}
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.ErrorCode = asked.Topic, asked.TopicID, missing.Code
	return out
}

func describe(t *storage.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID = kmsg.StringPtr(t.Name), t.ID
	for n := range t.Partitions() {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = int32(n), node, 0 //nolint:gosec // see maxPartitions
		p.Replicas, p.ISR = []int32{node}, []int32{node}
		out.Partitions = append(out.Partitions, p)
	}
	return out
}

func (s *Server) describeCluster(_ *kmsg.DescribeClusterRequest, response *kmsg.DescribeClusterResponse) {
	broker := kmsg.NewDescribeClusterResponseBroker()
	broker.NodeID, broker.Host, broker.Port = node, s.host(), s.port()
	response.ClusterID, response.ControllerID = s.Store.Cluster(), node
	response.Brokers = append(response.Brokers, broker)
}

// group and transaction are what a coordinator may be asked for.
const coordinatesGroups = 0

func (s *Server) findCoordinator(asked *kmsg.FindCoordinatorRequest, response *kmsg.FindCoordinatorResponse) {
	var err error
	if asked.CoordinatorType != coordinatesGroups {
		err = kerr.InvalidRequest // there are no transactions
	}
	if asked.Version < 4 {
		response.ErrorCode, response.ErrorMessage = code(err), text(err)
		response.NodeID, response.Host, response.Port = node, s.host(), s.port()
		return
	}
	for _, key := range asked.CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.ErrorCode, c.ErrorMessage = key, code(err), text(err)
		c.NodeID, c.Host, c.Port = node, s.host(), s.port()
		response.Coordinators = append(response.Coordinators, c)
	}
}

func (s *Server) initProducerID(asked *kmsg.InitProducerIDRequest, response *kmsg.InitProducerIDResponse) {
	if asked.TransactionalID != nil {
		response.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code // there are no transactions
		return
	}
	id, err := s.Store.ProducerID()
	response.ProducerID, response.ProducerEpoch, response.ErrorCode = id, 0, code(err)
}

func (s *Server) describeLogDirs(asked *kmsg.DescribeLogDirsRequest, response *kmsg.DescribeLogDirsResponse) {
	wanted := map[string]bool{}
	for _, t := range asked.Topics {
		wanted[t.Topic] = true
	}
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = filepath.Join(s.Store.Dir(), "partitions")
	for _, t := range s.Store.Topics() {
		if t.Name == OffsetsTopic || asked.Topics != nil && !wanted[t.Name] {
			continue
		}
		out := kmsg.NewDescribeLogDirsResponseDirTopic()
		out.Topic = t.Name
		for n, p := range t.Partitions() {
			sized := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			sized.Partition, sized.Size = int32(n), p.Bytes() //nolint:gosec // see maxPartitions
			out.Partitions = append(out.Partitions, sized)
		}
		dir.Topics = append(dir.Topics, out)
	}
	response.Dirs = append(response.Dirs, dir)
}
