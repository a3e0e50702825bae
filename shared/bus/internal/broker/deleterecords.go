package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// deleteVersion is the used version of DeleteRecords: brokers from
// Kafka 2.4 to 4 have it. kafka-go has none.
const deleteVersion = 2

// deletion is a DeleteRecords request for one partition, and its answer.
type deletion struct {
	clientID  string
	topic     string
	partition int32
	before    int64

	code kafka.Error
}

var (
	_ protocol.Message      = (*deletion)(nil)
	_ protocol.RawExchanger = (*deletion)(nil)
)

func (d *deletion) ApiKey() protocol.ApiKey { return protocol.DeleteRecords } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go call RawExchange.
func (d *deletion) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (d *deletion) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(d.encode()); err != nil {
		return nil, err
	}
	body, err := ReadAnswer(rw, nil)
	if err != nil {
		return nil, err
	}
	return d, d.decode(body)
}

func (d *deletion) encode() []byte {
	b := wire.AppendHead(make([]byte, 0, 128), int16(protocol.DeleteRecords), deleteVersion, d.clientID)
	b = wire.AppendCompactLength(b, 1)
	b = wire.AppendCompactString(b, d.topic)
	b = wire.AppendCompactLength(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(d.partition)) //nolint:gosec // as the protocol has it
	b = binary.BigEndian.AppendUint64(b, uint64(d.before))    //nolint:gosec // as the protocol has it
	b = append(b, wire.NoTags, wire.NoTags)
	b = binary.BigEndian.AppendUint32(b, uint32(RequestTimeout.Milliseconds()))
	return wire.Sized(append(b, wire.NoTags))
}

func (d *deletion) decode(body []byte) error {
	r := &wire.Scanner{Rest: body}
	r.Int32() // correlation
	r.Tags()
	r.Int32() // throttle
	topics := r.CompactItems(3)
	r.Compact() // name
	if partitions := r.CompactItems(15); topics != 1 || partitions != 1 {
		return errors.New("cannot read an answer to DeleteRecords: it is not about one partition")
	}
	r.Int32() // partition
	r.Int64() // the first remaining offset
	d.code = kafka.Error(r.Int16())
	if r.Bad {
		return errors.New("cannot read an answer to DeleteRecords: it ends too early")
	}
	return nil
}

// DeleteRecords deletes a partition's records before an offset. The
// connection is to its leader.
func (c *Connection) DeleteRecords(ctx context.Context, clientID, topic string, partition int, before int64) error {
	request := &deletion{clientID: clientID, topic: topic, partition: int32(partition), before: before} //nolint:gosec // a partition
	if _, err := c.RoundTrip(ctx, 2*RequestTimeout, request); err != nil {
		return err
	}
	if request.code != 0 {
		return request.code
	}
	return nil
}
