package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// Limits of a server.
const (
	maxConnections  = 1000
	maxRefusals     = 100       // remembered
	requestsInQueue = 64        // of a connection, read and not answered
	memoryBytes     = 256 << 20 // of requests that are being read
)

// OffsetsTopic has the offsets that groups have committed. Clients do
// not see it.
const OffsetsTopic = "__consumer_offsets"

// A Config is what a server serves.
type Config struct {
	Store  *storage.Store
	Groups *group.Coordinator
	Secret *Secret          // nil: all clients are let in
	Now    func() time.Time // the machine's clock
	Logger *slog.Logger
}

// A Server answers clients.
type Server struct {
	Config

	catalog  catalog
	records  records
	handlers map[kmsg.Key]handler // bounded by the kinds of requests

	address net.TCPAddr
	ctx     context.Context
	cancel  context.CancelFunc
	memory  *budget

	mu          sync.Mutex
	connections map[*conn]struct{} // bounded by maxConnections
	refused     []string
	wait        sync.WaitGroup
}

func New(config Config) *Server {
	s := &Server{Config: config, connections: map[*conn]struct{}{}, memory: newBudget(memoryBytes)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.catalog = catalog{config.Store}
	s.records = records{s.catalog, config.Now, config.Logger}
	s.handlers = s.newHandlers(groups{config.Groups, s.catalog}, topics{s.catalog, config.Groups})
	return s
}

// Serve accepts clients until the listener is closed. Clients are told
// to connect to its address.
func (s *Server) Serve(listener net.Listener) {
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP {
		s.address = *address
	}
	s.wait.Go(func() {
		for {
			socket, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				s.Logger.Warn("embedded broker: cannot accept a client", "error", err)
				if !s.pause() {
					return
				}
				continue
			}
			s.admit(socket)
		}
	})
}

// pause lets clients go after an error such as too many open files. It
// returns false once the server is closed.
func (s *Server) pause() bool {
	select {
	case <-s.ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

func (s *Server) admit(socket net.Conn) {
	c := newConn(s, socket)
	s.mu.Lock()
	full := len(s.connections) >= maxConnections
	if !full && s.ctx.Err() == nil {
		s.connections[c] = struct{}{}
		s.wait.Go(c.run)
	}
	s.mu.Unlock()
	if full {
		s.Logger.Warn("embedded broker: a client was turned away, there are too many", "client", socket.RemoteAddr(), "connections", maxConnections)
	}
	if full || s.ctx.Err() != nil {
		socket.Close()
	}
}

func (s *Server) gone(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// Close ends all connections. What waits is answered first, if it can be.
func (s *Server) Close() {
	s.cancel()
	s.Groups.Close()
	s.mu.Lock()
	for c := range s.connections {
		c.socket.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// Refused lists the requests that are not served, in order, such as
// "JoinGroup v1".
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func (s *Server) remember(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < maxRefusals {
		s.refused = append(s.refused, request)
	}
}

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
	kmsg.DescribeClientQuotas: {1, 1},
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
type handler func(*call, kmsg.Request) (kmsg.Response, error)

// answer returns the handler of one kind of request, whose answer complete fills in.
func answer[Q kmsg.Request, A kmsg.Response](complete func(Q, A)) handler {
	return func(_ *call, request kmsg.Request) (kmsg.Response, error) {
		response := request.ResponseKind()
		complete(request.(Q), response.(A))
		return response, nil
	}
}

func (s *Server) newHandlers(groups groups, topics topics) map[kmsg.Key]handler {
	return map[kmsg.Key]handler{
		kmsg.Fetch:       s.records.fetch,
		kmsg.ListOffsets: answer(s.records.listOffsets),
		kmsg.Metadata:    answer(s.metadata),

		kmsg.OffsetCommit:    answer(groups.offsetCommit),
		kmsg.OffsetFetch:     answer(groups.offsetFetch),
		kmsg.FindCoordinator: answer(s.findCoordinator),
		kmsg.JoinGroup:       groups.joinGroup,
		kmsg.Heartbeat:       answer(groups.heartbeat),
		kmsg.LeaveGroup:      answer(groups.leaveGroup),
		kmsg.SyncGroup:       answer(groups.syncGroup),
		kmsg.DescribeGroups:  answer(groups.describeGroups),
		kmsg.ListGroups:      answer(groups.listGroups),
		kmsg.DeleteGroups:    answer(groups.deleteGroups),

		kmsg.SASLHandshake:    s.saslHandshake,
		kmsg.SASLAuthenticate: s.saslAuthenticate,
		kmsg.ApiVersions:      s.apiVersions,

		kmsg.CreateTopics:            answer(topics.createTopics),
		kmsg.DeleteTopics:            answer(topics.deleteTopics),
		kmsg.DeleteRecords:           answer(s.records.deleteRecords),
		kmsg.CreatePartitions:        answer(topics.createPartitions),
		kmsg.DescribeConfigs:         answer(topics.describeConfigs),
		kmsg.AlterConfigs:            answer(topics.alterConfigs),
		kmsg.IncrementalAlterConfigs: answer(topics.incrementalAlterConfigs),

		kmsg.InitProducerID:       answer(s.initProducerID),
		kmsg.OffsetForLeaderEpoch: answer(s.records.offsetForLeaderEpoch),
		kmsg.DescribeLogDirs:      answer(s.describeLogDirs),
		kmsg.DescribeCluster:      answer(s.describeCluster),
		kmsg.DescribeClientQuotas: answer(noQuotas),
	}
}

// noQuotas answers that there are none.
func noQuotas(_ *kmsg.DescribeClientQuotasRequest, response *kmsg.DescribeClientQuotasResponse) {
	response.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
}

// begin does what is not left to the answer's turn.
func (s *Server) begin(c *call, request kmsg.Request) func() (kmsg.Response, error) {
	if produce, is := request.(*kmsg.ProduceRequest); is {
		return s.records.produce(produce)
	}
	handle := s.handlers[kmsg.Key(request.Key())]
	return func() (kmsg.Response, error) { return handle(c, request) }
}

func (s *Server) saslHandshake(c *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.SASLHandshakeResponse)
	response.SupportedMechanisms = []string{Mechanism}
	mechanism := request.(*kmsg.SASLHandshakeRequest).Mechanism
	switch {
	case s.Secret == nil:
		response.ErrorCode = kerr.IllegalSaslState.Code
	case mechanism != Mechanism:
		response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		return response, refuse("a sign-in was refused: only "+Mechanism+" is known", "mechanism", mechanism)
	default:
		c.signIn = s.Secret.Begin()
	}
	return response, nil
}

func (s *Server) saslAuthenticate(c *call, request kmsg.Request) (kmsg.Response, error) {
	if c.signIn == nil {
		return nil, refuse("a sign-in was refused: it did not begin with a handshake")
	}
	response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	answer, done, err := c.signIn.Step(request.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes)
	if err != nil {
		response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		response.ErrorMessage = text(errSignIn)
		if !errors.Is(err, errSignIn) {
			return response, refuse("a sign-in was refused", "error", err)
		}
		return response, refuse("a sign-in was refused: " + errSignIn.Error())
	}
	response.SASLAuthBytes = answer
	if done {
		c.signIn = nil
		_ = c.socket.SetReadDeadline(time.Time{})
		c.admitted.Store(true)
	}
	return response, nil
}

// A catalog is the topics of a store.
type catalog struct{ *storage.Store }

// topic returns a topic that clients see; nil if there is none.
func (c catalog) topic(name string) *storage.Topic {
	if name == OffsetsTopic {
		return nil
	}
	return c.Topic(name)
}

// partition returns a log that clients see.
func (c catalog) partition(topic string, partition int32) (*storage.Partition, error) {
	t := c.topic(topic)
	if t == nil {
		return nil, storage.ErrUnknownTopic
	}
	return t.Partition(partition)
}
