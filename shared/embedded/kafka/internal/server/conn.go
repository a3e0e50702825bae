package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

const (
	// maxRequestBytes is the largest accepted request, Apache Kafka's
	// socket.request.max.bytes.
	maxRequestBytes = 100 << 20

	// headBytes is the length of every request's head: size, key,
	// version and correlation id.
	headBytes = 12

	// UnauthenticatedBytes is the largest request accepted from an
	// unauthenticated client, which has signInTime to sign in.
	UnauthenticatedBytes = 64 << 10
	signInTime           = 30 * time.Second

	// answerTime is how long a client may take to read an answer.
	answerTime = time.Minute

	// pooledBytes is the size up to which memory is used again.
	pooledBytes = 4 << 20
)

// buffers are for requests to produce, and for answers.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// A conn is a client. Its requests are answered in order, one at a time;
// those to produce are appended as they come, so that one sync covers
// all that a client has sent.
type conn struct {
	server *Server
	socket net.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	queue  chan job

	admitted atomic.Bool // signed in, or that is not needed
	signIn   *conversation
}

// A call is a client with one of its requests.
type call struct {
	*conn

	clientID string
	tooNew   bool      // the request's version; it is answered in the oldest
	borrowed []*[]byte // memory of the answer
}

// borrow returns memory until the answer is sent.
func (c *call) borrow() *[]byte {
	memory := buffers.Get().(*[]byte)
	c.borrowed = append(c.borrowed, memory)
	return memory
}

func (c *call) giveBack() {
	for _, memory := range c.borrowed {
		giveBuffer(memory)
	}
	c.borrowed = nil
}

// A job is a request whose answer is to be sent in its turn.
type job struct {
	*call

	correlation uint32
	answer      func() (kmsg.Response, error) // no response: none is sent
}

func newConn(s *Server, socket net.Conn) *conn {
	c := &conn{server: s, socket: socket, queue: make(chan job, requestsInQueue)}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.admitted.Store(s.Secret == nil)
	return c
}

// run serves the client until it goes, or does what it may not.
func (c *conn) run() {
	defer c.server.gone(c)
	c.server.wait.Go(c.answerAll)
	defer close(c.queue)
	defer c.cancel()
	defer c.socket.Close()
	defer c.survive()
	if !c.admitted.Load() {
		_ = c.socket.SetReadDeadline(time.Now().Add(signInTime)) //nolint:forbidigo // sockets go by the machine's clock
	}
	for {
		if err := c.readRequest(); err != nil {
			if r := new(refusal); errors.As(err, &r) && c.ctx.Err() == nil {
				c.server.Logger.Warn(r.why, append(r.args, "client", c.socket.RemoteAddr())...)
			}
			return
		}
	}
}

// survive keeps a mistake in one connection from ending the process.
func (c *conn) survive() {
	if cause := recover(); cause != nil {
		c.server.Logger.Error("embedded broker: a request could not be answered, its connection is closed",
			"client", c.socket.RemoteAddr(), "error", cause, "stack", string(debug.Stack()))
		c.socket.Close()
	}
}

// A refusal is why a connection is closed.
type refusal struct {
	why  string
	args []any
}

func (r *refusal) Error() string { return fmt.Sprint(append([]any{r.why}, r.args...)...) }

func refuse(why string, args ...any) error { return &refusal{"embedded broker: " + why, args} }

// readRequest reads the next request, and begins or queues its answer.
func (c *conn) readRequest() error {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(c.socket, head); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head)
	key, version := kmsg.Key(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:])) //nolint:gosec // as the protocol has it
	request, err := c.check(size, key, version)
	call := &call{conn: c, tooNew: key == kmsg.ApiVersions && err == nil && request.GetVersion() != version}
	if err != nil {
		return err
	}
	body := int(size) - (headBytes - 4)
	taken := c.server.memory.take(body)
	defer c.server.memory.give(taken)
	memory := new([]byte)
	if key == kmsg.Produce { // nothing of it is kept
		memory = buffers.Get().(*[]byte)
		defer giveBuffer(memory)
	}
	if cap(*memory) < body {
		*memory = make([]byte, body)
	}
	*memory = (*memory)[:body]
	if _, err := io.ReadFull(c.socket, *memory); err != nil {
		return err
	}
	if call.clientID, err = decode(request, *memory); err != nil {
		return refuse("a client sent a malformed request", "request", key.Name(), "version", version, "error", err)
	}
	c.queue <- job{call, binary.BigEndian.Uint32(head[8:]), c.server.begin(call, request)}
	return nil
}

func giveBuffer(memory *[]byte) {
	if cap(*memory) <= pooledBytes {
		buffers.Put(memory)
	}
}

// check returns an empty request, or why it is not served.
func (c *conn) check(size uint32, key kmsg.Key, version int16) (kmsg.Request, error) {
	request := kmsg.RequestForKey(int16(key)) //nolint:gosec // as the protocol has it
	switch {
	case request == nil || size > maxRequestBytes || size < headBytes-4:
		return nil, refuse("a client that does not speak Kafka was turned away", "size", size, "key", int16(key)) //nolint:gosec // as above
	case !c.admitted.Load() && !mayAsk(size, key):
		return nil, refuse("a client that has not signed in was turned away", "request", key.Name(), "size", size)
	}
	v, served := versions[key]
	if key == kmsg.ApiVersions && version > v.newest { // answered with what is served
		version = 0
	}
	if !served || version < v.oldest || version > v.newest {
		c.server.remember(fmt.Sprintf("%s v%d", key.Name(), version))
		return nil, refuse("this request is not served", "request", key.Name(), "version", version)
	}
	request.SetVersion(version)
	return request, nil
}

// mayAsk reports whether a client may send a request before it has
// signed in.
func mayAsk(size uint32, key kmsg.Key) bool {
	switch key {
	case kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate:
		return size <= UnauthenticatedBytes
	}
	return false
}

var errMalformed = errors.New("it ends too early")

// decode reads what follows the head: the client's id, tags, the body.
func decode(request kmsg.Request, rest []byte) (clientID string, err error) {
	if len(rest) < 2 {
		return "", errMalformed
	}
	n := int(int16(binary.BigEndian.Uint16(rest))) //nolint:gosec // -1 is null
	rest = rest[2:]
	if n > len(rest) {
		return "", errMalformed
	}
	clientID, rest = string(rest[:max(n, 0)]), rest[max(n, 0):]
	if request.IsFlexible() {
		if rest, err = skipTags(rest); err != nil {
			return "", err
		}
	}
	return clientID, request.ReadFrom(rest)
}

func skipTags(rest []byte) ([]byte, error) {
	number := func() (n uint64) {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			rest = nil
			return 0
		}
		rest = rest[size:]
		return n
	}
	for tags := number(); tags > 0; tags-- {
		number()
		size := number()
		if size > uint64(len(rest)) || len(rest) == 0 && tags > 1 {
			return nil, errMalformed
		}
		rest = rest[size:]
	}
	if rest == nil {
		return nil, errMalformed
	}
	return rest, nil
}

// answerAll sends the answers in order.
func (c *conn) answerAll() {
	defer func() {
		c.socket.Close()
		for range c.queue { // the reader must not wait
		}
	}()
	defer c.survive()
	for j := range c.queue {
		response, err := j.answer()
		if response != nil {
			err := c.send(j, response)
			j.giveBack()
			if err != nil {
				return
			}
		}
		if err != nil {
			if r := new(refusal); errors.As(err, &r) {
				c.server.Logger.Warn(r.why, append(r.args, "client", c.socket.RemoteAddr())...)
			}
			return
		}
	}
}

// roomFor returns about how many bytes an answer takes, so that one with
// records is not copied again and again while it grows.
func roomFor(response kmsg.Response) (bytes int) {
	const beside = 64 // a partition's bytes beside its records
	if fetched, is := response.(*kmsg.FetchResponse); is {
		for _, t := range fetched.Topics {
			for i := range t.Partitions {
				bytes += beside + len(t.Partitions[i].RecordBatches)
			}
		}
	}
	return bytes
}

func (c *conn) send(j job, response kmsg.Response) error {
	memory := buffers.Get().(*[]byte)
	defer giveBuffer(memory)
	b := append(slices.Grow((*memory)[:0], roomFor(response)), 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, j.correlation)
	if response.IsFlexible() && response.Key() != int16(kmsg.ApiVersions) {
		b = append(b, 0) // no tags
	}
	b = response.AppendTo(b)
	*memory = b
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))           //nolint:gosec // see maxAnswerBytes
	_ = c.socket.SetWriteDeadline(time.Now().Add(answerTime)) //nolint:forbidigo // sockets go by the machine's clock
	_, err := c.socket.Write(b)
	return err
}

func (c *conn) host() string {
	host, _, err := net.SplitHostPort(c.socket.RemoteAddr().String())
	if err != nil {
		return c.socket.RemoteAddr().String()
	}
	return host
}

// A budget is memory that connections share. One that needs more than
// all of it gets it alone.
type budget struct {
	mu   sync.Mutex
	more *sync.Cond
	left int
	all  int
}

func newBudget(bytes int) *budget {
	b := &budget{left: bytes, all: bytes}
	b.more = sync.NewCond(&b.mu)
	return b
}

// take waits for so many bytes, and returns how many to give back.
func (b *budget) take(bytes int) int {
	bytes = min(bytes, b.all)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.left < bytes {
		b.more.Wait()
	}
	b.left -= bytes
	return bytes
}

func (b *budget) give(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	b.more.Broadcast()
}

// known are Kafka's names for errors.
var known = []struct {
	err error
	is  *kerr.Error
}{
	{storage.ErrUnknownTopic, kerr.UnknownTopicOrPartition},
	{storage.ErrTopicExists, kerr.TopicAlreadyExists},
	{storage.ErrOutOfRange, kerr.OffsetOutOfRange},
	{storage.ErrOutOfOrder, kerr.OutOfOrderSequenceNumber},
	{storage.ErrFenced, kerr.InvalidProducerEpoch},
	{storage.ErrUnknownProducer, kerr.UnknownProducerID},
	{storage.ErrNotWritten, kerr.KafkaStorageError},
	{storage.ErrDamaged, kerr.KafkaStorageError},
	{batch.ErrCorrupt, kerr.CorruptMessage},
	{batch.ErrInvalid, kerr.InvalidRecord},
}

// code returns Kafka's code for an error, 0 for none.
func code(err error) int16 {
	if err == nil {
		return 0
	}
	if named := new(kerr.Error); errors.As(err, &named) {
		return named.Code
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.is.Code
		}
	}
	return kerr.UnknownServerError.Code
}

// text returns what a client is told of an error; nil for none.
func text(err error) *string {
	if err == nil {
		return nil
	}
	return kmsg.StringPtr(err.Error())
}
