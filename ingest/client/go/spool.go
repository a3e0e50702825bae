package weir

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A spool has a file for each batch that is not settled. A file is written
// under another name first, so that one of this name is whole, also after
// kill -9; a power cut may lose what the system had not written yet.
// The name has the batch's time, the number of its entries, and its key.
type spool struct {
	dir  string
	lock *os.File
}

const (
	batchSuffix  = ".batch"
	unfinished   = ".unfinished"
	lockName     = "lock"
	ownerOnly    = 0o700
	ownerWrites  = 0o600
	checksumSize = 4
)

// openSpool returns nil where there is to be none.
func openSpool(o Spool) (*spool, error) {
	if o.Dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(o.Dir, ownerOnly); err != nil {
		return nil, fmt.Errorf("weir: cannot make the spool's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(o.Dir, lockName), os.O_CREATE|os.O_RDWR, ownerWrites)
	if err != nil {
		return nil, fmt.Errorf("weir: cannot open the spool's lock: %w", err)
	}
	if err := lockFile(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("weir: the spool %q cannot be locked: %w: give each process a folder of its own", o.Dir, err)
	}
	return &spool{o.Dir, lock}, nil
}

func (s *spool) close() {
	if s != nil {
		s.lock.Close()
	}
}

// batches lists what an earlier process has left, and removes what it was
// writing.
func (s *spool) batches() (left []*batch, err error) {
	entries, err := os.ReadDir(s.dir) // by name
	if err != nil {
		return nil, fmt.Errorf("weir: cannot list the spool: %w", err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), unfinished) {
			os.Remove(filepath.Join(s.dir, entry.Name()))
		}
		b, ok := parseName(entry.Name())
		if info, err := entry.Info(); ok && err == nil {
			b.file, b.size = entry.Name(), info.Size()
			left = append(left, b)
		}
	}
	return left, nil
}

func (b *batch) name() string {
	return fmt.Sprintf("%020d_%d_%s%s", b.since.UnixNano(), b.entries, b.key, batchSuffix)
}

func parseName(name string) (*batch, bool) {
	var nanos int64
	b := &batch{}
	text, ok := strings.CutSuffix(name, batchSuffix)
	if _, err := fmt.Sscanf(strings.ReplaceAll(text, "_", " "), "%d %d %s", &nanos, &b.entries, &b.key); err != nil || !ok {
		return nil, false
	}
	b.since = time.Unix(0, nanos)
	return b, true
}

// write moves the body of a batch to disk.
func (s *spool) write(b *batch) error {
	name := b.name()
	path := filepath.Join(s.dir, name)
	text := append(checksum(b.body), b.body...)
	err := os.WriteFile(path+unfinished, text, ownerWrites)
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err != nil {
		os.Remove(path + unfinished)
		return fmt.Errorf("weir: cannot write to the spool, a batch stays in memory: %w", err)
	}
	b.file, b.size, b.body = name, int64(len(text)), nil
	return nil
}

var errDamaged = errors.New("its checksum is wrong")

// read loads the body of a batch.
func (s *spool) read(b *batch) error {
	text, err := os.ReadFile(filepath.Join(s.dir, b.file))
	if err == nil && (len(text) < checksumSize || !slices.Equal(checksum(text[checksumSize:]), text[:checksumSize])) {
		err = errDamaged
	}
	if err != nil {
		return fmt.Errorf("weir: a batch of the spool is lost: %s: %w", b.file, err)
	}
	b.body = text[checksumSize:]
	return nil
}

func (s *spool) remove(b *batch) {
	os.Remove(filepath.Join(s.dir, b.file)) // left, it is sent again by a later process, under the same key
}

func checksum(body []byte) []byte {
	sum := crc32.ChecksumIEEE(body)
	return []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
