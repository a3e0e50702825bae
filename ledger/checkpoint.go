package ledger

import (
	"maps"
	"slices"
	"time"
)

// A Checkpoint is what the books of all organizations were at positions
// of the log and behind a decision. The root of Hour has its hash.
type Checkpoint struct {
	Hour      time.Time     // of the log, sealed with it
	Topic     [16]byte      // id of the log's topic
	Positions map[int]int64 // next offsets, bounded by the log's partitions
	Decision  int64         // position of the last decision in the event store
	Hash      Hash
}

// A CheckpointDigest hashes the content of a checkpoint.
type CheckpointDigest struct{ digest }

// NewCheckpointDigest returns the digest of a checkpoint without content.
func NewCheckpointDigest(c Checkpoint) *CheckpointDigest {
	d := CheckpointDigest{newDigest(checkpointForm)}
	d.time(c.Hour)
	d.text(string(c.Topic[:]))
	d.number(c.Decision, int64(len(c.Positions)))
	for _, partition := range slices.Sorted(maps.Keys(c.Positions)) {
		d.number(int64(partition), c.Positions[partition])
	}
	return &d
}

// Add adds what an organization has of a kind, in byte order of both.
func (d *CheckpointDigest) Add(organization, kind string, content []byte) {
	d.text(organization)
	d.text(kind)
	d.text(string(content))
}

// Sum returns the hash so far.
func (d *CheckpointDigest) Sum() Hash { return d.sum() }
