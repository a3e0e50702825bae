package server

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// records handles requests that write and read the logs.
type records struct {
	catalog
	now    func() time.Time
	logger *slog.Logger
}

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
func (s records) produce(request *kmsg.ProduceRequest) func() (kmsg.Response, error) {
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

func (s records) append(request *kmsg.ProduceRequest, topic string, p kmsg.ProduceRequestTopicPartition) (a storage.Appended, start int64, err error) {
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
	if latest := s.now().Add(maxAhead).UnixMilli(); b.MaxTime() > latest {
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

// Limits of an answer to Fetch.
const (
	maxAnswerBytes = 64 << 20
	longestFetch   = time.Minute
)

// A fetch is a request for records, while it waits for them.
type fetch struct {
	call     *call
	logs     records
	request  *kmsg.FetchRequest
	response *kmsg.FetchResponse
	bytes    int
	failed   bool // a partition has an error, which is told at once
}

// fetch answers once there are enough records, or the client's patience
// is over. There are no fetch sessions: clients that ask for one are
// told that there is none, and name all partitions each time.
func (s records) fetch(c *call, request kmsg.Request) (kmsg.Response, error) {
	f := &fetch{call: c, logs: s, request: request.(*kmsg.FetchRequest)}
	if f.request.SessionID != 0 {
		f.reset()
		f.response.ErrorCode = kerr.FetchSessionIDNotFound.Code
		return f.response, nil
	}
	watcher := storage.NewWatcher()
	for _, p := range f.partitions() {
		p.Watch(watcher)
		defer p.Unwatch(watcher)
	}
	patience := time.NewTimer(min(time.Duration(f.request.MaxWaitMillis)*time.Millisecond, longestFetch))
	defer patience.Stop()
	for { // also once after the watch has begun
		if f.mayBeEnough() {
			f.read()
			if f.isEnough() {
				return f.response, nil
			}
		}
		select {
		case <-watcher.C:
		case <-patience.C:
			f.read()
			return f.response, nil
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// mayBeEnough reports whether a read may be enough. A consumer that lets records gather
// waits through many of them: each time all would be read again.
func (f *fetch) mayBeEnough() bool {
	bytes := int64(0)
	for _, t := range f.request.Topics {
		for _, p := range t.Partitions {
			log, err := f.find(t, p.Partition)
			if err != nil || p.CurrentLeaderEpoch > 0 {
				return true // it is told at once
			}
			waiting, err := log.Waiting(p.FetchOffset)
			if err != nil {
				return true
			}
			bytes += waiting
		}
	}
	return bytes >= int64(f.request.MinBytes) || f.request.MaxWaitMillis <= 0
}

func (f *fetch) isEnough() bool {
	return f.failed || f.bytes >= int(f.request.MinBytes) || f.request.MaxWaitMillis <= 0
}

func (f *fetch) reset() {
	f.response = kmsg.NewPtrFetchResponse()
	f.response.Version = f.request.Version
	f.bytes, f.failed = 0, false
	f.call.giveBack()
}

// read reads what there is.
func (f *fetch) read() {
	f.reset()
	for _, t := range f.request.Topics {
		out := kmsg.NewFetchResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, f.readPartition(t, p))
		}
		f.response.Topics = append(f.response.Topics, out)
	}
}

func (f *fetch) readPartition(t kmsg.FetchRequestTopic, p kmsg.FetchRequestTopicPartition) kmsg.FetchResponseTopicPartition {
	out := kmsg.NewFetchResponseTopicPartition()
	out.Partition, out.HighWatermark, out.LastStableOffset, out.LogStartOffset = p.Partition, -1, -1, -1
	log, err := f.find(t, p.Partition)
	if err == nil && p.CurrentLeaderEpoch > 0 {
		err = kerr.UnknownLeaderEpoch
	}
	if err == nil {
		out.RecordBatches, err = f.records(log, p)
		out.LogStartOffset, out.HighWatermark = log.Bounds()
		out.LastStableOffset = out.HighWatermark
	}
	if err != nil {
		f.failed = true
		out.ErrorCode = code(err)
	}
	return out
}

func (f *fetch) records(log *storage.Partition, p kmsg.FetchRequestTopicPartition) ([]byte, error) {
	left := min(int(f.request.MaxBytes), maxAnswerBytes) - f.bytes
	if left <= 0 && f.bytes > 0 {
		_, end := log.Bounds()
		if p.FetchOffset > end {
			return nil, storage.ErrOutOfRange
		}
		return nil, nil
	}
	memory := f.call.borrow()
	records, err := log.Read(*memory, p.FetchOffset, max(min(left, int(p.PartitionMaxBytes)), 0), f.bytes == 0)
	f.bytes += len(records)
	if len(records) > 0 && cap(records) > cap(*memory) {
		*memory = records[:0] // it was too small
	}
	if errors.Is(err, storage.ErrDamaged) {
		f.logs.logger.Error("embedded broker: cannot read the log", "error", err)
	}
	return records, err
}

// find returns a log by its topic's name or, from version 13 on, its id.
func (f *fetch) find(t kmsg.FetchRequestTopic, partition int32) (*storage.Partition, error) {
	topic := f.logs.topic(t.Topic)
	if f.request.Version >= 13 {
		if topic = f.logs.TopicByID(t.TopicID); topic == nil {
			return nil, kerr.UnknownTopicID
		}
	}
	if topic == nil {
		return nil, storage.ErrUnknownTopic
	}
	return topic.Partition(partition)
}

// partitions returns all that are asked for, and exist.
func (f *fetch) partitions() (all []*storage.Partition) {
	for _, t := range f.request.Topics {
		for _, p := range t.Partitions {
			if log, err := f.find(t, p.Partition); err == nil {
				all = append(all, log)
			}
		}
	}
	return all
}

// Times with a meaning in ListOffsets.
const (
	latest   = -1
	earliest = -2
	newest   = -3
)

func (s records) listOffsets(asked *kmsg.ListOffsetsRequest, response *kmsg.ListOffsetsResponse) {
	for _, t := range asked.Topics {
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
}

func (s records) offsetAt(topic string, p kmsg.ListOffsetsRequestTopicPartition) (offset, at int64, err error) {
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

// offsetForLeaderEpoch knows one epoch: the leader never changes.
func (s records) offsetForLeaderEpoch(asked *kmsg.OffsetForLeaderEpochRequest, response *kmsg.OffsetForLeaderEpochResponse) {
	for _, t := range asked.Topics {
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
}

func (s records) deleteRecords(asked *kmsg.DeleteRecordsRequest, response *kmsg.DeleteRecordsResponse) {
	for _, t := range asked.Topics {
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
}
