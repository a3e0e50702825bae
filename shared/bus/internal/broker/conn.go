package broker

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// Connection is one socket to one broker with one request at a time. It
// does not use kafka-go's Transport, which notices a new leader only when
// its metadata expires, and passes each request through three goroutines.
type Connection struct {
	wire   *protocol.Conn
	Socket net.Conn // below wire, to write large data directly
}

// Connect dials a broker, negotiates versions and authenticates, within
// the dialer's timeout.
func Connect(ctx context.Context, dialer *kafka.Dialer, address string) (*Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout(dialer))
	defer cancel()
	socket, err := dialSocket(ctx, dialer, address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to broker %q: %w", address, err)
	}
	c := &Connection{protocol.NewConn(socket, dialer.ClientID), socket}
	if err := c.open(ctx, dialer, address); err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot open a session with broker %q: %w", address, err)
	}
	return c, nil
}

func dialTimeout(dialer *kafka.Dialer) time.Duration {
	if dialer.Timeout > 0 {
		return dialer.Timeout
	}
	return bus.DefaultDialTimeout
}

func dialSocket(ctx context.Context, dialer *kafka.Dialer, address string) (net.Conn, error) {
	dial := dialer.DialFunc
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: dialer.KeepAlive, LocalAddr: dialer.LocalAddr}).DialContext
	}
	socket, err := dial(ctx, "tcp", address)
	if err != nil || dialer.TLS == nil {
		return socket, err
	}
	return tls.Client(socket, tlsFor(dialer.TLS, address)), nil
}

// tlsFor sets the broker's name to verify if the settings have none.
func tlsFor(settings *tls.Config, address string) *tls.Config {
	if settings.ServerName != "" {
		return settings
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return settings
	}
	settings = settings.Clone()
	settings.ServerName = host
	return settings
}

func (c *Connection) open(ctx context.Context, dialer *kafka.Dialer, address string) error {
	if err := c.agree(ctx); err != nil {
		if dialer.TLS == nil && dialer.DialFunc == nil && hungUp(err) {
			return fmt.Errorf("it hangs up (if it speaks TLS at this port, set WEIR_BROKERS_TLS or WEIR_BROKERS_CA_FILE): %w", err)
		}
		return err
	}
	if dialer.SASLMechanism == nil {
		return nil
	}
	return c.authenticate(ctx, dialer.SASLMechanism, address)
}

// agree negotiates the version of each request.
func (c *Connection) agree(ctx context.Context) error {
	answer, err := c.RoundTrip(ctx, bus.DefaultDialTimeout, new(apiversions.Request))
	if err != nil {
		return err
	}
	known := answer.(*apiversions.Response)
	if known.ErrorCode != 0 {
		return kafka.Error(known.ErrorCode)
	}
	versions := make(map[protocol.ApiKey]int16, len(known.ApiKeys))
	for _, k := range known.ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		versions[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
		if ours, fixed := fixedVersions[key]; fixed && (ours < k.MinVersion || ours > k.MaxVersion) {
			return fmt.Errorf("broker speaks %v in versions %d to %d, need %d", key, k.MinVersion, k.MaxVersion, ours)
		}
	}
	c.wire.SetVersions(versions)
	return nil
}

// ProduceVersion is the used version of Produce: brokers from Kafka 2.4
// to 4 have it.
const ProduceVersion = 8

// fixedVersions are the requests encoded here, not by kafka-go, each
// in one version.
var fixedVersions = map[protocol.ApiKey]int16{protocol.Produce: ProduceVersion, protocol.Fetch: fetchVersion, protocol.Metadata: metadataVersion}

func (c *Connection) authenticate(ctx context.Context, mechanism sasl.Mechanism, address string) error {
	answer, err := c.RoundTrip(ctx, bus.DefaultDialTimeout, &saslhandshake.Request{Mechanism: mechanism.Name()})
	if err != nil {
		return err
	}
	switch code := kafka.Error(answer.(*saslhandshake.Response).ErrorCode); code {
	case 0:
	case kafka.UnsupportedSASLMechanism:
		return errRefused(mechanism.Name(), fmt.Errorf("%w: %w", kafka.SASLAuthenticationFailed, code))
	default:
		return code
	}
	session, state, err := mechanism.Start(sasl.WithMetadata(ctx, saslMetadata(address)))
	for done := false; err == nil && !done; {
		var challenge []byte
		if challenge, err = c.saslStep(ctx, state); err == nil {
			done, state, err = session.Next(ctx, challenge)
		}
	}
	if errors.Is(err, kafka.SASLAuthenticationFailed) {
		return errRefused(mechanism.Name(), err)
	}
	return err
}

func saslMetadata(address string) *sasl.Metadata {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	return &sasl.Metadata{Host: host, Port: number}
}

func (c *Connection) saslStep(ctx context.Context, state []byte) ([]byte, error) {
	answer, err := c.RoundTrip(ctx, bus.DefaultDialTimeout, &saslauthenticate.Request{AuthBytes: state})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, kafka.SASLAuthenticationFailed // brokers may refuse by closing the connection
	}
	if err != nil {
		return nil, err
	}
	step := answer.(*saslauthenticate.Response)
	if step.ErrorCode != 0 {
		return nil, fmt.Errorf("%w: %s", kafka.Error(step.ErrorCode), step.ErrorMessage)
	}
	return step.AuthBytes, nil
}

// RoundTrip sends a request and waits at most timeout for its answer. An error
// makes the connection unusable: the next answer may be to an older request.
func (c *Connection) RoundTrip(ctx context.Context, timeout time.Duration, request protocol.Message) (protocol.Message, error) {
	if err := c.wire.SetDeadline(clock.Now().Add(timeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.interrupt)
	defer stop()
	answer, err := c.wire.RoundTrip(request)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

// interrupt makes reads and writes of the connection fail.
func (c *Connection) interrupt() {
	c.wire.SetDeadline(time.Unix(1, 0))
}

func (c *Connection) Close() error { return c.wire.Close() }

// errRefused adds what to check after brokers refused a user, its
// password, or a token.
func errRefused(mechanism string, why error) error {
	if mechanism == "OAUTHBEARER" {
		return fmt.Errorf("it refuses the token, have the file of WEIR_BROKERS_TOKEN_FILE hold one that is valid now: %w", why)
	}
	return fmt.Errorf("it refuses the user or the password, see WEIR_BROKERS_USER and WEIR_BROKERS_PASSWORD_FILE: %w", why)
}

// An exchange is a request of kmsg, and its answer: kafka-go's Metadata has
// no topic ids, and it has no DeleteRecords.
type exchange struct {
	request  kmsg.Request
	clientID string
	answer   kmsg.Response
}

var (
	_ protocol.Message      = (*exchange)(nil)
	_ protocol.RawExchanger = (*exchange)(nil)
)

func (e *exchange) ApiKey() protocol.ApiKey { return protocol.ApiKey(e.request.Key()) } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go call RawExchange.
func (e *exchange) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID(e.clientID))
	if _, err := rw.Write(formatter.AppendRequest(nil, e.request, 0)); err != nil { // correlation 0: one request at a time
		return nil, err
	}
	body, err := ReadAnswer(rw, nil)
	if err != nil {
		return nil, err
	}
	r := &wire.Scanner{Rest: body}
	r.Int32() // correlation
	if e.answer = e.request.ResponseKind(); e.answer.IsFlexible() {
		r.Tags()
	}
	if err := e.answer.ReadFrom(r.Rest); err != nil {
		return nil, fmt.Errorf("cannot read an answer to %v: %w", e.ApiKey(), err)
	}
	return e, nil
}

// ReadAnswer reads an answer after its length, into memory if it fits.
func ReadAnswer(r io.Reader, memory []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	length := int32(binary.BigEndian.Uint32(size[:]))
	if length < 0 || length > 1<<30 {
		return nil, fmt.Errorf("cannot read an answer of %d bytes", length)
	}
	if int(length) > cap(memory) {
		memory = make([]byte, length)
	}
	memory = memory[:length]
	_, err := io.ReadFull(r, memory)
	return memory, err
}

// TopicSettings are what a topic deletes, and when.
type TopicSettings struct {
	Compacted       bool          // by key only
	DeleteRetention time.Duration // how long the tombstone of a key is kept at least
}

// Memory returns how old a snapshot may be to be updated from the log:
// half the retention of tombstones, to allow for different clocks and
// for the reading itself.
func (t TopicSettings) Memory() time.Duration { return t.DeleteRetention / 2 }

// Settings asks for a topic's settings.
func (c *Cluster) Settings(ctx context.Context, topic string) (found TopicSettings, err error) {
	described, err := c.Describe(ctx, []string{topic}, []string{"cleanup.policy", "delete.retention.ms"})
	if err != nil {
		return found, err
	}
	settings := described[topic]
	found.Compacted = settings["cleanup.policy"] == "compact"
	if text, given := settings["delete.retention.ms"]; given {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return found, fmt.Errorf("cannot read delete.retention.ms of %q: %w", topic, err)
		}
		found.DeleteRetention = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	return found, nil
}

// Describe asks for settings of topics by the brokers' names.
func (c *Cluster) Describe(ctx context.Context, topics, names []string) (map[string]map[string]string, error) {
	const ofTopic = 2
	question := &describeconfigs.Request{}
	for _, topic := range topics {
		question.Resources = append(question.Resources, describeconfigs.RequestResource{ResourceType: ofTopic, ResourceName: topic, ConfigNames: names})
	}
	answer, err := c.Ask(ctx, question)
	if err != nil {
		return nil, fmt.Errorf("cannot read the settings of %q: %w", topics, err)
	}
	found := map[string]map[string]string{}
	for _, r := range answer.(*describeconfigs.Response).Resources {
		if r.ErrorCode != 0 {
			return nil, fmt.Errorf("cannot read the settings of %q: %w: %s", r.ResourceName, kafka.Error(r.ErrorCode), r.ErrorMessage)
		}
		found[r.ResourceName] = map[string]string{}
		for _, entry := range r.ConfigEntries {
			found[r.ResourceName][entry.ConfigName] = entry.ConfigValue
		}
	}
	return found, nil
}
