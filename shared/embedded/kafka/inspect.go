package kafka

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// wayOut is the remedy for a damaged directory.
const wayOut = "restore the directory from a copy, or move it away to start with an empty log"

func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s; %s", ErrDamaged, path, fmt.Sprintf(format, args...), wayOut)
}

// inspect reads the whole log and returns the first damage. A log whose
// last file ends within a batch is sound: the process was killed while
// writing, and that batch was not acknowledged.
func inspect(dir string) error {
	topics, err := readTopics(dir)
	if err != nil {
		return err
	}
	if err := inspectRoot(dir, len(topics) > 0); err != nil {
		return err
	}
	for _, t := range topics {
		for p := range t.Partitions {
			if err := inspectPartition(t.partitionDir(dir, p), t.compacted()); err != nil {
				return err
			}
		}
	}
	return nil
}

// inspectRoot finds logs without the files that name them: kfake would
// take the directory for a new one.
func inspectRoot(dir string, named bool) error {
	partitions, _ := os.ReadDir(filepath.Join(dir, "partitions"))
	if len(partitions) > 0 && !named {
		return damaged(filepath.Join(dir, "topics.json"), "it names no topic, yet there are partitions")
	}
	path := filepath.Join(dir, "meta.json")
	if _, err := os.Stat(path); err != nil && named {
		return damaged(path, "it cannot be read: %v", err)
	}
	return nil
}

func inspectPartition(partitionDir string, compacted bool) error {
	segments, err := readSegments(partitionDir)
	if err != nil {
		return err
	}
	if err := inspectSnapshot(partitionDir, segments, compacted); err != nil {
		return err
	}
	for i, s := range segments {
		last := i == len(segments)-1
		end, err := inspectSegment(s, last)
		if err != nil {
			return err
		}
		if !last && !compacted && end != segments[i+1].base {
			return damaged(s.path, "it ends at offset %d, the next file begins at %d", end, segments[i+1].base)
		}
	}
	return nil
}

// snapshotFile is what kfake calls a snapshot.
const snapshotFile = "snapshot.json"

// A snapshot is a partition's state at the last orderly stop.
type snapshot struct {
	Segments []segmentState `json:"segments"`
}

type segmentState struct {
	Base int64 `json:"base_offset"`
	Size int64 `json:"size"`
}

// readSnapshot returns an empty one if none can be read: kfake then
// reads the log itself.
func readSnapshot(partitionDir string) (s snapshot) {
	raw, err := os.ReadFile(filepath.Join(partitionDir, snapshotFile))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return snapshot{}
	}
	return s
}

// inspectSnapshot detects a truncated log: files only grow after an
// orderly stop. A compacted log is rewritten and can't be checked.
func inspectSnapshot(partitionDir string, segments []segment, compacted bool) error {
	known := readSnapshot(partitionDir).Segments
	if compacted || len(known) == 0 {
		return nil
	}
	last := known[len(known)-1]
	for _, s := range segments {
		if info, err := os.Stat(s.path); s.base == last.Base && err == nil && info.Size() < last.Size {
			return damaged(s.path, "it has %d bytes, %d at the last stop", info.Size(), last.Size)
		}
		if s.base >= last.Base {
			return nil
		}
	}
	return damaged(partitionDir, "the file that begins at offset %d is missing", last.Base)
}

// Offsets in a record batch, message format 2.
const (
	batchLengthAt    = 8  // int32: bytes after it
	batchPrefixBytes = 12 // base offset and length
	batchCRCAt       = 17 // uint32, CRC-32C of all that follows
	batchLastDeltaAt = 23 // int32: the last record's offset minus the base offset
	batchNewestAt    = 35 // int64: time of the newest record, in milliseconds
	batchHeaderBytes = 61
)

// inspectSegment reads one file and returns the offset after its last record.
func inspectSegment(s segment, last bool) (end int64, err error) {
	file, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	var batch []byte
	for at := int64(0); ; at += int64(len(batch)) {
		batch, err = readBatch(in, batch)
		switch {
		case errors.Is(err, io.EOF):
			return end, nil
		case err != nil && last && onlyZeros(in): // the end of an unfinished write
			return end, nil
		case err != nil:
			return 0, damaged(s.path, "batch at byte %d: %v", at, err)
		}
		end = int64(binary.BigEndian.Uint64(batch)) + int64(binary.BigEndian.Uint32(batch[batchLastDeltaAt:])) + 1
	}
}

var errShort = errors.New("it is cut off")

// readBatch reads the next batch into buf, or returns a partial one
// with an error; io.EOF at the end of the file.
func readBatch(in io.Reader, buf []byte) ([]byte, error) {
	buf = append(buf[:0], make([]byte, batchPrefixBytes)...)
	n, err := io.ReadFull(in, buf)
	if errors.Is(err, io.EOF) {
		return buf[:0], io.EOF
	}
	if err != nil {
		return buf[:n], errShort
	}
	length := binary.BigEndian.Uint32(buf[batchLengthAt:])
	if length < batchHeaderBytes-batchPrefixBytes || length > maxRequestBytes {
		return buf, fmt.Errorf("a length of %d bytes is not possible", length)
	}
	buf = append(buf, make([]byte, length)...)
	n, err = io.ReadFull(in, buf[batchPrefixBytes:])
	if err != nil {
		return buf[:batchPrefixBytes+n], errShort
	}
	if crc32.Checksum(buf[batchCRCAt+4:], castagnoli) != binary.BigEndian.Uint32(buf[batchCRCAt:]) {
		return buf, errors.New("its checksum differs")
	}
	return buf, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// onlyZeros reports whether only zeros follow a bad batch, which a file
// system leaves for data that never reached the disk.
func onlyZeros(rest io.Reader) bool {
	tail, err := io.ReadAll(rest)
	return err == nil && len(bytes.TrimLeft(tail, "\x00")) == 0
}
