package server

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// maxAhead is how far a record may be ahead of this machine's clock,
// Apache Kafka's default of message.timestamp.after.max.ms.
const maxAhead = time.Hour

// A production is one batch of a request.
type production struct {
	topic     string
	partition int32
	appended  storage.Appended
	start     int64 // of the log
	err       error
}

// produce appends the batches; its result waits until they are kept.
func (s *Server) produce(request *kmsg.ProduceRequest) func() (kmsg.Response, error) {
	var all []production
	for _, t := range request.Topics {
		for _, p := range t.Partitions {
			done := production{topic: t.Topic, partition: p.Partition}
			done.appended, done.start, done.err = s.append(request, t.Topic, p)
			all = append(all, done)
		}
	}
	version, silent := request.Version, request.Acks == 0
	return func() (kmsg.Response, error) {
		response := kmsg.NewPtrProduceResponse()
		response.Version = version
		for _, p := range all {
			p.report(response)
		}
		if silent {
			return nil, nil
		}
		return response, nil
	}
}

func (s *Server) append(request *kmsg.ProduceRequest, topic string, p kmsg.ProduceRequestTopicPartition) (a storage.Appended, start int64, err error) {
	t := s.topic(topic)
	switch {
	case request.Acks < -1 || request.Acks > 1:
		return a, -1, kerr.InvalidRequiredAcks
	case request.TransactionID != nil:
		return a, -1, kerr.InvalidTxnState
	case t == nil:
		return a, -1, kerr.UnknownTopicOrPartition
	case len(p.Records) > t.MaxMessageBytes():
		return a, -1, fmt.Errorf("%w: %d bytes, %q takes %d at most", kerr.MessageTooLarge, len(p.Records), topic, t.MaxMessageBytes())
	}
	log, err := t.Partition(p.Partition)
	if err != nil {
		return a, -1, err
	}
	b, err := batch.Check(p.Records)
	if err != nil {
		return a, -1, err
	}
	if latest := s.Now().Add(maxAhead).UnixMilli(); b.MaxTime() > latest {
		return a, -1, fmt.Errorf("%w: more than %s ahead of the broker's clock", kerr.InvalidTimestamp, maxAhead)
	}
	a, err = log.Append(b)
	start, _ = log.Bounds()
	return a, start, err
}

// report waits until the batch is kept, and adds the outcome.
func (p production) report(response *kmsg.ProduceResponse) {
	err := p.err
	if err == nil {
		err = p.appended.Wait()
	}
	out := kmsg.NewProduceResponseTopicPartition()
	out.Partition, out.ErrorCode, out.ErrorMessage = p.partition, code(err), text(err)
	out.BaseOffset, out.LogAppendTime, out.LogStartOffset = -1, -1, p.start
	if err == nil {
		out.BaseOffset = p.appended.Base
	}
	if n := len(response.Topics); n > 0 && response.Topics[n-1].Topic == p.topic {
		response.Topics[n-1].Partitions = append(response.Topics[n-1].Partitions, out)
		return
	}
	t := kmsg.NewProduceResponseTopic()
	t.Topic, t.Partitions = p.topic, append(t.Partitions, out)
	response.Topics = append(response.Topics, t)
}
