package server

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// Limits of an answer to Fetch.
const (
	maxAnswerBytes = 64 << 20
	longestFetch   = time.Minute
)

// A fetch is a request for records, while it waits for them.
type fetch struct {
	call     *call
	server   *Server
	request  *kmsg.FetchRequest
	response *kmsg.FetchResponse
	bytes    int
	failed   bool // a partition has an error, which is told at once
}

// fetch answers once there are enough records, or the client's patience
// is over. There are no fetch sessions: clients that ask for one are
// told that there is none, and name all partitions each time.
func (s *Server) fetch(c *call, request kmsg.Request) (kmsg.Response, error) {
	f := &fetch{call: c, server: s, request: request.(*kmsg.FetchRequest)}
	if f.request.SessionID != 0 {
		f.reset()
		f.response.ErrorCode = kerr.FetchSessionIDNotFound.Code
		return f.response, nil
	}
	f.read()
	if f.isEnough() {
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
		f.read()
		if f.isEnough() {
			return f.response, nil
		}
		select {
		case <-watcher.C:
		case <-patience.C:
			return f.response, nil
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
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
		f.server.Logger.Error("embedded broker: cannot read the log", "error", err)
	}
	return records, err
}

// find returns a log by its topic's name or, from version 13 on, its id.
func (f *fetch) find(t kmsg.FetchRequestTopic, partition int32) (*storage.Partition, error) {
	topic := f.server.topic(t.Topic)
	if f.request.Version >= 13 {
		if topic = f.server.Store.TopicByID(t.TopicID); topic == nil {
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
