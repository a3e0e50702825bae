package storage

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

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
		t.partitions = append(t.partitions, t.store.newPartition(t, n))
	}
}

func (s *Store) newPartition(t *Topic, n int) *Partition {
	return &Partition{
		store: s, topic: t, name: checkpointName(t.ID, n), dir: s.partitionDir(t.Name, n),
		producers: producers{}, watchers: map[*Watcher]struct{}{},
	}
}

const partitionsDir = "partitions"

func (s *Store) partitionDir(topic string, n int) string {
	return filepath.Join(s.options.Dir, partitionsDir, fmt.Sprintf("%s-%d", url.PathEscape(topic), n))
}

func checkpointName(id TopicID, n int) string { return fmt.Sprintf("%x/%d", id[:], n) }
