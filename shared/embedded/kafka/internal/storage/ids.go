package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// idsFile holds the producer id from which on none is given.
const idsFile = "producers"

// idsAtOnce is how many ids are taken with one write: enough for clients
// that need new ones while the disk is full.
const idsAtOnce = 1 << 20

// An idBlock is the ids that are taken and not given yet.
type idBlock struct {
	mu        sync.Mutex
	next, end int64
}

// ProducerID returns an id that no producer had before.
func (s *Store) ProducerID() (int64, error) {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	if s.ids.next == s.ids.end {
		end := s.ids.end + idsAtOnce
		if err := disk.Replace(s.options.FS, s.options.Dir, idsFile, fmt.Append(nil, end)); err != nil {
			return 0, notWritten(s.path(idsFile), err)
		}
		s.ids.end = end
	}
	s.ids.next++
	return s.ids.next - 1, nil
}

func (s *Store) readIDs() error {
	raw, err := disk.Read(s.options.FS, s.path(idsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // of those given, the logs know
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(string(raw), &s.ids.end); err != nil || s.ids.end < 0 {
		return damaged(s.path(idsFile), "%q is no producer id", raw)
	}
	s.ids.next = s.ids.end
	return nil
}

// skipIDs gives no id that a log knows, also if the file with those
// given was lost.
func (s *Store) skipIDs(known producers) {
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	for id := range known {
		if id >= s.ids.end {
			s.ids.next, s.ids.end = id+1, id+1
		}
	}
}
