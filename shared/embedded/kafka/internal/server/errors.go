package server

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

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
