package server

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// served are the versions of a request that are served.
type served struct{ oldest, newest int16 }

// versions are from the oldest that Apache Kafka 4.0 serves (KIP-896) to
// the newest whose meaning is known here. Of what clients may ask before
// they have signed in, no version has tags: kmsg counts down any number
// of them, which a few bytes can make take seconds.
var versions = map[kmsg.Key]served{
	kmsg.Produce:     {3, 12},
	kmsg.Fetch:       {4, 16},
	kmsg.ListOffsets: {1, 8},
	kmsg.Metadata:    {0, 12},

	kmsg.OffsetCommit:    {2, 9},
	kmsg.OffsetFetch:     {1, 9},
	kmsg.FindCoordinator: {0, 5},
	kmsg.JoinGroup:       {2, 9},
	kmsg.Heartbeat:       {0, 4},
	kmsg.LeaveGroup:      {0, 5},
	kmsg.SyncGroup:       {0, 5},
	kmsg.DescribeGroups:  {0, 5},
	kmsg.ListGroups:      {0, 4},
	kmsg.DeleteGroups:    {0, 2},

	kmsg.SASLHandshake:    {1, 1},
	kmsg.SASLAuthenticate: {0, 1},
	kmsg.ApiVersions:      {0, 2},

	kmsg.CreateTopics:            {2, 7},
	kmsg.DeleteTopics:            {1, 6},
	kmsg.DeleteRecords:           {0, 2},
	kmsg.CreatePartitions:        {0, 3},
	kmsg.DescribeConfigs:         {1, 4},
	kmsg.AlterConfigs:            {0, 2},
	kmsg.IncrementalAlterConfigs: {0, 1},

	kmsg.InitProducerID:       {0, 4},
	kmsg.OffsetForLeaderEpoch: {2, 4},
	kmsg.DescribeLogDirs:      {1, 4},
	kmsg.DescribeCluster:      {0, 1},
}

// apiVersions lists them, except Produce from version 0 on, as Apache
// Kafka does for an old library.
func (s *Server) apiVersions(c *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.ApiVersionsResponse)
	if c.tooNew {
		response.ErrorCode = kerr.UnsupportedVersion.Code
	}
	for key := range int16(kmsg.MaxKey + 1) {
		v, served := versions[kmsg.Key(key)]
		if !served {
			continue
		}
		entry := kmsg.NewApiVersionsResponseApiKey()
		entry.ApiKey, entry.MinVersion, entry.MaxVersion = key, v.oldest, v.newest
		if kmsg.Key(key) == kmsg.Produce {
			entry.MinVersion = 0
		}
		response.ApiKeys = append(response.ApiKeys, entry)
	}
	return response, nil
}

// A handler answers a request. With an error, the connection is closed
// after the answer.
type handler func(*Server, *call, kmsg.Request) (kmsg.Response, error)

var handlers = map[kmsg.Key]handler{
	kmsg.Fetch:       (*Server).fetch,
	kmsg.ListOffsets: (*Server).listOffsets,
	kmsg.Metadata:    (*Server).metadata,

	kmsg.OffsetCommit:    (*Server).offsetCommit,
	kmsg.OffsetFetch:     (*Server).offsetFetch,
	kmsg.FindCoordinator: (*Server).findCoordinator,
	kmsg.JoinGroup:       (*Server).joinGroup,
	kmsg.Heartbeat:       (*Server).heartbeat,
	kmsg.LeaveGroup:      (*Server).leaveGroup,
	kmsg.SyncGroup:       (*Server).syncGroup,
	kmsg.DescribeGroups:  (*Server).describeGroups,
	kmsg.ListGroups:      (*Server).listGroups,
	kmsg.DeleteGroups:    (*Server).deleteGroups,

	kmsg.SASLHandshake:    (*Server).saslHandshake,
	kmsg.SASLAuthenticate: (*Server).saslAuthenticate,
	kmsg.ApiVersions:      (*Server).apiVersions,

	kmsg.CreateTopics:            (*Server).createTopics,
	kmsg.DeleteTopics:            (*Server).deleteTopics,
	kmsg.DeleteRecords:           (*Server).deleteRecords,
	kmsg.CreatePartitions:        (*Server).createPartitions,
	kmsg.DescribeConfigs:         (*Server).describeConfigs,
	kmsg.AlterConfigs:            (*Server).alterConfigs,
	kmsg.IncrementalAlterConfigs: (*Server).incrementalAlterConfigs,

	kmsg.InitProducerID:       (*Server).initProducerID,
	kmsg.OffsetForLeaderEpoch: (*Server).offsetForLeaderEpoch,
	kmsg.DescribeLogDirs:      (*Server).describeLogDirs,
	kmsg.DescribeCluster:      (*Server).describeCluster,
}

// begin does what is not left to the answer's turn.
func (s *Server) begin(c *call, request kmsg.Request) func() (kmsg.Response, error) {
	if produce, is := request.(*kmsg.ProduceRequest); is {
		return s.produce(produce)
	}
	handle := handlers[kmsg.Key(request.Key())]
	return func() (kmsg.Response, error) { return handle(s, c, request) }
}
