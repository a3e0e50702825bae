package kafka

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Apache Kafka begins an empty file once a whole log has expired. kfake
// has no such file: its next start would begin the partition at offset
// 0, before its readers' positions. So the end of such a partition is
// stored, and a start makes a file of it: one batch without records,
// which no reader gets.

// endFile stores the offset after the last record of a partition
// that expired whole.
const endFile = "end"

// noteEnd stores the end of a partition before its last file is deleted.
func noteEnd(partitionDir string, end int64) error {
	place := filepath.Join(partitionDir, endFile)
	if err := os.WriteFile(place+".new", []byte(strconv.FormatInt(end, 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(place+".new", place)
}

// restoreEnds prepares expired partitions for loading.
func restoreEnds(dir string) error {
	topics, err := readTopics(dir)
	if err != nil {
		return err
	}
	for _, t := range topics {
		for p := range t.Partitions {
			if err := restoreEnd(t.partitionDir(dir, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func restoreEnd(partitionDir string) error {
	segments, err := readSegments(partitionDir)
	if err != nil {
		return err
	}
	if len(segments) > 1 {
		return removeEmpty(segments[0])
	}
	place := filepath.Join(partitionDir, endFile)
	text, err := os.ReadFile(place)
	if errors.Is(err, fs.ErrNotExist) || len(segments) == 1 {
		return nil
	}
	if err != nil {
		return err
	}
	end, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || end < 1 {
		return damaged(place, "%q is no offset", text)
	}
	return writeEmpty(partitionDir, end)
}

// removeEmpty removes a file that an earlier start made: the log
// continues without it.
func removeEmpty(s segment) error {
	info, err := os.Stat(s.path)
	if err != nil || info.Size() > batchHeaderBytes {
		return err
	}
	return os.Remove(s.path)
}

// writeEmpty writes a log of one batch without records that ends at an
// offset, and declares that offset its start.
func writeEmpty(partitionDir string, end int64) error {
	file := segmentState{Base: end - 1, Size: batchHeaderBytes}
	state, err := json.Marshal(struct {
		snapshot

		Version int   `json:"version"`
		Highest int64 `json:"high_watermark"`
		Stable  int64 `json:"last_stable_offset"`
		Start   int64 `json:"log_start_offset"`
	}{snapshot{[]segmentState{file}}, 1, end, end, end})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(partitionDir, snapshotFile), state, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(partitionDir, fmt.Sprintf("%d.dat", file.Base)), emptyBatch(file.Base), 0o600)
}

// emptyBatch returns a batch of one offset, without producer and records.
func emptyBatch(at int64) []byte {
	batch := binary.BigEndian.AppendUint64(nil, uint64(at)) //nolint:gosec // offsets are positive
	batch = binary.BigEndian.AppendUint32(batch, batchHeaderBytes-batchPrefixBytes)
	batch = append(batch, 0, 0, 0, 0, 2)       // leader's epoch, message format
	batch = append(batch, make([]byte, 4)...)  // checksum
	batch = append(batch, make([]byte, 22)...) // attributes, last offset, both times
	for range 14 {
		batch = append(batch, 0xff) // producer, its epoch and sequence: none
	}
	batch = append(batch, 0, 0, 0, 0) // records
	binary.BigEndian.PutUint32(batch[batchCRCAt:], crc32.Checksum(batch[batchCRCAt+4:], castagnoli))
	return batch
}
