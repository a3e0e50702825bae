package storage

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

const topicsFile = "topics.json"

// A topicList is the content of topics.json.
type topicList struct {
	Cluster string       `json:"cluster"`
	Topics  []topicEntry `json:"topics"`
	Deleted []topicEntry `json:"deleted,omitempty"` // directories may be left of them
}

type topicEntry struct {
	Name       string            `json:"name"`
	ID         TopicID           `json:"id"`
	Partitions int               `json:"partitions"`
	Settings   map[string]string `json:"settings,omitempty"`
}

func (e topicEntry) topic(s *Store) *Topic {
	t := &Topic{Name: e.Name, ID: e.ID, store: s, settings: e.Settings}
	t.grow(e.Partitions)
	return t
}

// readTopics reads topics.json, or makes the first one.
func (o Options) readTopics() (topicList, error) {
	var list topicList
	raw, err := disk.Read(o.FS, o.path(topicsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		logs, err := disk.ListOrNone(o.FS, o.path(partitionsDir))
		if err != nil {
			return list, err
		}
		if len(logs) > 0 {
			return list, damagedRoot(o.path(topicsFile), "it is missing, yet there are partitions")
		}
		list.Cluster = rand.Text()
		return list, o.writeTopics(list)
	case err != nil:
		return list, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, damagedRoot(o.path(topicsFile), "it is not JSON: %v", err)
	}
	return list, nil
}

func (o Options) writeTopics(list topicList) error {
	return o.replace(topicsFile, list)
}

// replace leaves a file with a value, or as it was.
func (o Options) replace(name string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	if err := disk.Replace(o.FS, o.Dir, name, text); err != nil {
		return notWritten(o.path(name), err)
	}
	return nil
}

func (s *Store) list() topicList {
	list := topicList{Cluster: s.cluster}
	for _, t := range s.Topics() {
		list.Topics = append(list.Topics, t.entry())
	}
	return list
}

func (t *Topic) entry() topicEntry {
	return topicEntry{t.Name, t.ID, len(t.Partitions()), t.Settings()}
}

// Create makes a topic, on disk when it returns.
func (s *Store) Create(name string, partitions int, settings map[string]string) (*Topic, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.Topic(name) != nil {
		return nil, ErrTopicExists
	}
	entry := topicEntry{Name: name, Partitions: partitions, Settings: settings}
	_, _ = rand.Read(entry.ID[:])
	list := s.list()
	list.Topics = append(list.Topics, entry)
	if err := s.options.writeTopics(list); err != nil {
		return nil, err
	}
	t := entry.topic(s)
	s.add(t)
	return t, nil
}

// Grow gives the topic more partitions.
func (t *Topic) Grow(partitions int) error {
	return t.change(func(e *topicEntry) { e.Partitions = partitions }, func() { t.grow(partitions) })
}

// Set changes settings; those without value get their default.
func (t *Topic) Set(changes map[string]*string) error {
	var next map[string]string
	return t.change(func(e *topicEntry) {
		next = e.Settings
		if next == nil {
			next = map[string]string{}
		}
		for name, value := range changes {
			if value == nil {
				delete(next, name)
			} else {
				next[name] = *value
			}
		}
		e.Settings = next
	}, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.settings = maps.Clone(next)
	})
}

// change writes a change of a topic, and then makes it.
func (t *Topic) change(write func(*topicEntry), apply func()) error {
	s := t.store
	s.changing.Lock()
	defer s.changing.Unlock()
	list := s.list()
	i := slices.IndexFunc(list.Topics, func(e topicEntry) bool { return e.ID == t.ID })
	if i < 0 {
		return ErrUnknownTopic
	}
	write(&list.Topics[i])
	if err := s.options.writeTopics(list); err != nil {
		return err
	}
	apply()
	return nil
}

// Delete removes the topic with all its records.
func (t *Topic) Delete() error {
	s := t.store
	s.changing.Lock()
	defer s.changing.Unlock()
	list := s.list()
	i := slices.IndexFunc(list.Topics, func(e topicEntry) bool { return e.ID == t.ID })
	if i < 0 {
		return ErrUnknownTopic
	}
	list.Deleted = append(list.Deleted, list.Topics[i])
	list.Topics = slices.Delete(list.Topics, i, i+1)
	if err := s.options.writeTopics(list); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.byName, t.Name)
	delete(s.byID, t.ID)
	s.mu.Unlock()
	for _, p := range t.Partitions() {
		p.abandon()
	}
	return s.options.finishDeletions(list)
}

// abandon ends all use of a partition.
func (p *Partition) abandon() {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.accept()
	p.release(ErrUnknownTopic)
	for _, s := range p.segments {
		_ = s.file.Close()
	}
	_ = p.mark.close()
	p.segments, p.start, p.stable = nil, p.end, p.end
}

// finishDeletions removes what is left of deleted topics.
func (o Options) finishDeletions(list topicList) error {
	for _, t := range list.Deleted {
		for n := range t.Partitions {
			if err := o.FS.RemoveAll(o.partitionDir(t.Name, n)); err != nil {
				return notWritten(o.partitionDir(t.Name, n), err)
			}
		}
	}
	if len(list.Deleted) == 0 {
		return nil
	}
	if err := o.syncDir(o.path(partitionsDir)); err != nil { // or they could come back
		return err
	}
	list.Deleted = nil
	return o.writeTopics(list)
}

// findStrays finds logs that topics.json does not name.
func (s *Store) findStrays() error {
	known := map[string]bool{}
	for _, t := range s.Topics() {
		for _, p := range t.Partitions() {
			known[filepath.Base(p.dir)] = true
		}
	}
	entries, err := disk.ListOrNone(s.options.FS, s.options.path(partitionsDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !known[e.Name] {
			return damagedRoot(filepath.Join(s.options.path(partitionsDir), e.Name), "%s names no such partition", topicsFile)
		}
	}
	return nil
}

// A TopicID tells a topic from others that had or will have its name.
type TopicID [16]byte

func (id TopicID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

func (id *TopicID) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(id)) {
		return fmt.Errorf("%q is no topic id", text)
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// A Topic is a named set of partitions. Safe for concurrent use.
type Topic struct {
	Name string
	ID   TopicID

	store      *Store
	mu         sync.RWMutex
	settings   map[string]string // bounded by its requests: a few names
	partitions []*Partition
}

// Settings that the log heeds. Others are kept and shown.
const (
	settingCleanup         = "cleanup.policy"
	settingRetention       = "retention.ms"
	settingRetentionBytes  = "retention.bytes"
	settingSegment         = "segment.bytes"
	settingDeleteRetention = "delete.retention.ms"
	settingMaxMessage      = "max.message.bytes"
)

// Defaults returns the settings that the topic has unless it is given others.
func (t *Topic) Defaults() map[string]string {
	return map[string]string{
		settingCleanup: "delete", settingRetention: "-1", settingRetentionBytes: "-1",
		settingSegment: strconv.FormatInt(t.store.options.SegmentBytes, 10), settingDeleteRetention: "86400000",
		settingMaxMessage: "1048588", "compression.type": "producer", "min.insync.replicas": "1", "message.timestamp.type": "CreateTime",
	}
}

// Settings returns the settings that were given to the topic.
func (t *Topic) Settings() map[string]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return maps.Clone(t.settings)
}

func (t *Topic) setting(name string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if value, given := t.settings[name]; given {
		return value
	}
	return t.Defaults()[name]
}

// Compacted reports whether it keeps the newest record of each key, and
// nothing is deleted by age.
func (t *Topic) Compacted() bool { return strings.Contains(t.setting(settingCleanup), "compact") }

// MaxMessageBytes is the size of the largest batch that it takes.
func (t *Topic) MaxMessageBytes() int { return int(t.limit(settingMaxMessage)) }

func (t *Topic) segmentBytes() int64 { return t.limit(settingSegment) }

// limit reads a numeric setting; -1 means none.
func (t *Topic) limit(name string) int64 {
	n, err := strconv.ParseInt(t.setting(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (t *Topic) deleteRetention() time.Duration {
	return time.Duration(min(max(t.limit(settingDeleteRetention), 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// CheckSetting returns why a setting can't be given to a topic.
func CheckSetting(name, value string) error {
	switch name {
	case settingRetention, settingRetentionBytes, settingSegment, settingDeleteRetention, settingMaxMessage:
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < -1 {
			return fmt.Errorf("%s is %q, want a whole number", name, value)
		}
	case settingCleanup:
		for policy := range strings.SplitSeq(value, ",") {
			if policy != "compact" && policy != "delete" {
				return fmt.Errorf("%s is %q, want compact or delete", name, value)
			}
		}
	}
	return nil
}

// Partitions returns all of them, in order.
func (t *Topic) Partitions() []*Partition {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.partitions[:len(t.partitions):len(t.partitions)]
}

// Partition returns one of them.
func (t *Topic) Partition(n int32) (*Partition, error) {
	partitions := t.Partitions()
	if n < 0 || int(n) >= len(partitions) {
		return nil, ErrUnknownTopic
	}
	return partitions[n], nil
}

// grow makes partitions up to a number.
func (t *Topic) grow(to int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := len(t.partitions); n < to; n++ {
		t.partitions = append(t.partitions, newPartition(t, n))
	}
}

func newPartition(t *Topic, n int) *Partition {
	s := t.store
	dir := s.options.partitionDir(t.Name, n)
	return &Partition{
		topic: t, name: checkpointName(t.ID, n),
		journal: journal{
			log:       log{store: s, dir: dir, producers: producers{}},
			condition: condition{logger: s.options.Logger.With("topic", t.Name, "directory", dir), refusing: &s.refusing},
			listeners: listeners{watchers: map[*Watcher]struct{}{}},
		},
	}
}

const partitionsDir = "partitions"

func (o Options) partitionDir(topic string, n int) string {
	return filepath.Join(o.Dir, partitionsDir, fmt.Sprintf("%s-%d", url.PathEscape(topic), n))
}

func checkpointName(id TopicID, n int) string { return fmt.Sprintf("%x/%d", id[:], n) }

// takes returns an error for a batch that compaction could not read.
func (t *Topic) takes(b batch.Batch) error {
	if !t.Compacted() {
		return nil
	}
	records, err := b.Records()
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Key == nil {
			return fmt.Errorf("%w: a record without key for the compacted topic %q", batch.ErrInvalid, t.Name)
		}
	}
	return nil
}
