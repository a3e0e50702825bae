package storage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// markFile says up to which offset a partition's log was synced.
const markFile = "synced"

// A mark is the offset before which all records may have been
// acknowledged: what is not whole there is damage, what is not whole
// after it was never finished. It is written before each
// acknowledgement and not synced, so that it costs no time: after a kill
// it is the last one, after a power cut it may be one of a moment
// before.
type mark struct {
	file disk.File // nil: not there yet
	at   int64
}

const (
	markBytes    = 12 // the offset, and its checksum
	markOffsetIs = 8
)

var markTable = crc32.MakeTable(crc32.Castagnoli)

// openMark reads a directory's mark; 0 without one that is whole.
func openMark(fsys disk.FS, dir string) (mark, error) {
	file, err := fsys.Open(filepath.Join(dir, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	text := make([]byte, markBytes)
	n, _ := file.ReadAt(text, 0)
	if n < markBytes || crc32.Checksum(text[:markOffsetIs], markTable) != binary.BigEndian.Uint32(text[markOffsetIs:]) {
		return mark{file: file}, nil
	}
	return mark{file, int64(binary.BigEndian.Uint64(text))}, nil //nolint:gosec // as set writes it
}

// set moves the mark. One that can't be written stays where it is, which
// is sound.
func (m *mark) set(fsys disk.FS, dir string, at int64) {
	if m.at == at {
		return
	}
	if m.file == nil {
		file, err := fsys.Create(filepath.Join(dir, markFile))
		if err != nil {
			return
		}
		m.file = file
	}
	text := binary.BigEndian.AppendUint64(make([]byte, 0, markBytes), uint64(at)) //nolint:gosec // offsets are positive
	if _, err := m.file.WriteAt(binary.BigEndian.AppendUint32(text, crc32.Checksum(text, markTable)), 0); err == nil {
		m.at = at
	}
}

func (m *mark) close() error {
	if m.file == nil {
		return nil
	}
	return m.file.Close()
}

// removeMark removes it, to last: it may be beyond the end that a repair
// has given the log.
func (p *Partition) removeMark() error {
	return errors.Join(p.store.options.FS.RemoveAll(filepath.Join(p.dir, markFile)), p.store.syncDir(p.dir))
}
