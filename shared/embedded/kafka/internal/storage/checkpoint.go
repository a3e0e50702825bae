package storage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"slices"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

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
func (s *Store) readCheckpoint() (c checkpoint, err error) {
	c.Partitions = map[string]bounds{}
	raw, err := disk.Read(s.options.FS, s.path(checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Partitions == nil {
		return c, damaged(s.path(checkpointFile), "it is not JSON of a checkpoint: %v", err)
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
	if err := s.replace(checkpointFile, c); err != nil {
		return err
	}
	s.written = c
	return nil
}
