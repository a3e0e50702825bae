package storage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// Options are how a store is kept.
type Options struct {
	FS           disk.FS
	Dir          string // must be there
	SegmentBytes int64  // size of a file, unless a topic says otherwise
	Sync         bool   // a record is kept once it is on the disk; else once the system has it
	Clock        func() time.Time
	Stamp        bool             // Clock is ahead of the machine's, which stamps files
	Machine      func() time.Time // that clock, if it stamps
	Logger       *slog.Logger
}

// A Store is all topics. Safe for concurrent use.
type Store struct {
	options Options

	changing sync.Mutex // held while the list of topics changes

	mu     sync.RWMutex
	byName map[string]*Topic  // bounded by the topics
	byID   map[TopicID]*Topic // bounded by the topics

	ids         idBlock
	checkpoints sync.Mutex // held while they are written
	written     checkpoint // last
	cluster     string

	syncs    atomic.Int64
	refusing atomic.Int64
	failed   atomic.Int64
}

// Stats are what a store counts.
type Stats struct {
	Syncs    int64 // of files, since the start
	Refusing int64 // partitions whose last append failed
	Failed   int64 // partitions that refuse records until the next start
}

func (s *Store) Stats() Stats {
	return Stats{s.syncs.Load(), s.refusing.Load(), s.failed.Load()}
}

// Open reads a directory: all logs, each batch. It cuts off what was
// not finished, and returns ErrDamaged for what no crash leaves.
func Open(options Options) (*Store, error) {
	s := &Store{options: options, byName: map[string]*Topic{}, byID: map[TopicID]*Topic{}}
	known, err := s.load()
	if err != nil {
		return nil, err
	}
	if err := s.openLogs(known); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// load reads everything but the logs.
func (s *Store) load() (checkpoint, error) {
	list, err := s.options.readTopics()
	if err != nil {
		return checkpoint{}, err
	}
	s.cluster = list.Cluster
	for _, t := range list.Topics {
		s.add(t.topic(s))
	}
	if err := s.ids.read(s.options); err != nil {
		return checkpoint{}, err
	}
	if err := s.options.finishDeletions(list); err != nil {
		return checkpoint{}, err
	}
	if err := s.findStrays(); err != nil {
		return checkpoint{}, err
	}
	return s.options.readCheckpoint()
}

// Close saves what can be saved, and returns what could not.
func (s *Store) Close() error {
	err := s.stop()
	return errors.Join(err, s.writeCheckpoint())
}

func (s *Store) stop() (err error) {
	for _, t := range s.Topics() {
		for _, p := range t.Partitions() {
			err = errors.Join(err, p.stop())
		}
	}
	return err
}

func (s *Store) add(t *Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[t.Name], s.byID[t.ID] = t, t
}

// Topics returns all topics by name.
func (s *Store) Topics() []*Topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Topic, 0, len(s.byName))
	for _, t := range s.byName {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Topic) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Topic returns the topic of a name; nil if there is none.
func (s *Store) Topic(name string) *Topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[name]
}

// TopicByID returns the topic of an id; nil if there is none.
func (s *Store) TopicByID(id TopicID) *Topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byID[id]
}

// Cluster returns the id of this installation.
func (s *Store) Cluster() string { return s.cluster }

func (o Options) path(name string) string { return filepath.Join(o.Dir, name) }

// makePartitionDir makes a partition's directory, to last.
func (o Options) makePartitionDir(dir string) error {
	if err := o.FS.MakeDir(dir); err != nil {
		return err
	}
	return errors.Join(o.syncDir(filepath.Dir(dir)), o.syncDir(o.Dir))
}

// syncDir makes changes of a directory's files last, if that is wanted.
func (o Options) syncDir(dir string) error {
	if !o.Sync {
		return nil
	}
	err := o.FS.SyncDir(dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing was ever in it
		return nil
	}
	return err
}

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.options.Dir }

const checkpointFile = "checkpoint.json"

// A checkpoint is where each log began and ended when it was last
// looked at: every minute and at an orderly stop. A log that ends
// earlier has lost records.
type checkpoint struct {
	Partitions map[string]bounds `json:"partitions"` // by checkpointName, bounded by the partitions
}

type bounds struct {
	Start       int64        `json:"start"`
	End         int64        `json:"end"`
	Compactions []compaction `json:"compactions,omitempty"`
}

// readCheckpoint returns an empty one for a directory without.
func (o Options) readCheckpoint() (c checkpoint, err error) {
	c.Partitions = map[string]bounds{}
	raw, err := disk.Read(o.FS, o.path(checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Partitions == nil {
		return c, damaged(o.path(checkpointFile), "it is not JSON of a checkpoint: %v", err)
	}
	return c, nil
}

// bounds returns what a checkpoint keeps of a partition.
func (p *Partition) bounds() bounds {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return bounds{p.start, p.stable, slices.Clone(p.compactions)}
}

// writeCheckpoint looks at all logs.
func (s *Store) writeCheckpoint() error {
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	c := checkpoint{map[string]bounds{}}
	for _, t := range s.Topics() {
		for _, p := range t.Partitions() {
			if b := p.bounds(); b.End > 0 {
				c.Partitions[p.name] = b
			}
		}
	}
	if reflect.DeepEqual(c, s.written) {
		return nil
	}
	if err := s.options.replace(checkpointFile, c); err != nil {
		return err
	}
	s.written = c
	return nil
}

var (
	// ErrDamaged means that a data directory is not what was written there.
	ErrDamaged = errors.New("data directory damaged")

	// ErrNotWritten means that the disk refuses a write: whether it was
	// written is unknown, the same bytes may succeed later.
	ErrNotWritten = errors.New("cannot write to the log")

	ErrUnknownTopic = errors.New("unknown topic or partition")
	ErrTopicExists  = errors.New("topic exists")
	ErrOutOfRange   = errors.New("no such offset")

	// Errors of a producer's sequence.
	ErrOutOfOrder      = errors.New("sequence out of order")
	ErrFenced          = errors.New("epoch of an earlier producer")
	ErrUnknownProducer = errors.New("unknown producer")
)

// wayOut is the remedy for a damaged directory.
const wayOut = "weir resume goes on without what is damaged and says what is lost, or restore the directory from a copy"

func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s; %s", ErrDamaged, path, fmt.Sprintf(format, args...), wayOut)
}

// damagedRoot is damaged for what Repair can't repair.
func damagedRoot(path, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s; restore the directory from a copy, or move it away to start with an empty log", ErrDamaged, path, fmt.Sprintf(format, args...))
}

func notWritten(path string, cause error) error {
	return fmt.Errorf("%w %q: %w", ErrNotWritten, path, cause)
}
