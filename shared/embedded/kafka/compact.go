package kafka

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// kfake compacts a partition by deleting its files and writing them
// again: a crash between would lose the newest state of every key. So
// before compaction the old files get hard links, from which the next
// start restores a half compacted partition. Nothing is appended
// meanwhile: the restored files would lack it.

const (
	compactionDir  = "compaction"      // links to the files of compacted partitions, complete
	compactionNext = "compaction.new"  // the same, incomplete
	compactionPast = "compaction.past" // the same, no longer needed
)

// compactSafely runs compact, which rewrites all compacted topics in dir.
func compactSafely(dir string, compact func()) error {
	partitions, err := compactedPartitions(dir)
	if err != nil || len(partitions) == 0 {
		return err
	}
	if err := keepLinks(dir, partitions); err != nil {
		return err
	}
	compact()
	for _, p := range partitions { // they describe the old files
		if err := os.Remove(filepath.Join(p, snapshotFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return dropLinks(dir)
}

// dropLinks removes compactionDir, atomically: from half of it a start
// would restore half a log.
func dropLinks(dir string) error {
	past := filepath.Join(dir, compactionPast)
	err := os.Rename(filepath.Join(dir, compactionDir), past)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(past)
}

func compactedPartitions(dir string) ([]string, error) {
	topics, err := readTopics(dir)
	var partitions []string
	for _, t := range topics {
		for p := range t.Partitions {
			path := t.partitionDir(dir, p)
			if _, err := os.Stat(path); err == nil && t.compacted() {
				partitions = append(partitions, path)
			}
		}
	}
	return partitions, err
}

// keepLinks creates compactionDir, atomically, even across a crash.
func keepLinks(dir string, partitions []string) error {
	next := filepath.Join(dir, compactionNext)
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	for _, p := range partitions {
		if err := linkFiles(p, filepath.Join(next, filepath.Base(p))); err != nil {
			return err
		}
	}
	return os.Rename(next, filepath.Join(dir, compactionDir))
}

func linkFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// restoreCompaction restores what a crash left half compacted. It may
// be interrupted and run again.
func restoreCompaction(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, compactionPast)); err != nil {
		return err
	}
	kept := filepath.Join(dir, compactionDir)
	partitions, err := os.ReadDir(kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range partitions {
		place := filepath.Join(dir, "partitions", p.Name())
		if err := os.RemoveAll(place); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(kept, p.Name()), place); err != nil {
			return err
		}
	}
	return os.Remove(kept)
}
