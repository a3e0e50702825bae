package kafka

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The directory as kfake lays it out:
//
//	meta.json, topics.json                      the broker and its topics
//	partitions/<topic>-<n>/<first offset>.dat   batches as received, in order
//	partitions/<topic>-<n>/snapshot.json        the partition's state at the last orderly stop

// A topic is an entry of topics.json.
type topic struct {
	Name       string            `json:"name"`
	Partitions int               `json:"partitions"`
	Configs    map[string]string `json:"configs"`
}

func (t topic) compacted() bool { return strings.Contains(t.Configs["cleanup.policy"], "compact") }

// limit reads a setting of the topic such as retention.ms; -1 means none.
func (t topic) limit(setting string) int64 {
	n, err := strconv.ParseInt(t.Configs[setting], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (t topic) partitionDir(dir string, partition int) string {
	return filepath.Join(dir, "partitions", fmt.Sprintf("%s-%d", url.PathEscape(t.Name), partition))
}

// readTopics lists the topics in a data directory, none in a new one.
func readTopics(dir string) ([]topic, error) {
	var list struct {
		Topics []topic `json:"topics"`
	}
	path := filepath.Join(dir, "topics.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, damaged(path, "it is not JSON: %v", err)
	}
	return list.Topics, nil
}

// A segment is one file of a partition's log.
type segment struct {
	path string
	base int64 // offset of its first record
}

// readSegments lists a partition's files by offset, none before
// the first write.
func readSegments(partitionDir string) ([]segment, error) {
	entries, err := os.ReadDir(partitionDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var segments []segment
	for _, entry := range entries {
		name, isSegment := strings.CutSuffix(entry.Name(), ".dat")
		if base, err := strconv.ParseInt(name, 10, 64); isSegment && err == nil {
			segments = append(segments, segment{filepath.Join(partitionDir, entry.Name()), base})
		}
	}
	slices.SortFunc(segments, func(a, b segment) int { return cmp.Compare(a.base, b.base) })
	return segments, nil
}
