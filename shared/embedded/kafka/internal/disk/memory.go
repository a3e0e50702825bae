package disk

import (
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is files that end with the process. Directories need not be
// made.
type Memory struct {
	clock func() time.Time

	mu    sync.Mutex
	files map[string]*memoryFile // bounded by the topics of a test
}

var _ FS = (*Memory)(nil)

func NewMemory(clock func() time.Time) *Memory {
	return &Memory{clock: clock, files: map[string]*memoryFile{}}
}

func (m *Memory) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	file := m.files[name]
	if file == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return file, nil
}

func (m *Memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = &memoryFile{clock: m.clock, modified: m.clock()}
	return m.files[name], nil
}

func (m *Memory) List(dir string) (entries []Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[string]Entry{}
	for name, file := range m.files {
		rest, within := strings.CutPrefix(name, dir+"/")
		first, _, below := strings.Cut(rest, "/")
		switch {
		case within && below:
			seen[first] = Entry{Name: first, Dir: true}
		case within:
			seen[first] = file.entry(first)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		entries = append(entries, seen[name])
	}
	return entries, nil
}

func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := false
	for name, file := range maps.Clone(m.files) {
		if rest, within := strings.CutPrefix(name, from); within && (rest == "" || rest[0] == '/') {
			delete(m.files, name)
			m.files[to+rest] = file
			found = true
		}
	}
	if !found {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	return nil
}

func (m *Memory) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.files, func(file string, _ *memoryFile) bool {
		return file == name || strings.HasPrefix(file, path.Clean(name)+"/")
	})
	return nil
}

func (m *Memory) MakeDir(string) error { return nil }
func (m *Memory) SyncDir(string) error { return nil }

func (m *Memory) Stamp(name string, modified time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if file := m.files[name]; file != nil {
		file.mu.Lock()
		defer file.mu.Unlock()
		file.modified = modified
	}
	return nil
}

type memoryFile struct {
	clock func() time.Time

	mu       sync.RWMutex
	content  []byte
	modified time.Time
}

func (f *memoryFile) entry(name string) Entry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return Entry{Name: name, Size: int64(len(f.content)), Modified: f.modified}
}

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if at >= int64(len(f.content)) {
		return 0, io.EOF
	}
	n := copy(p, f.content[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.modified = f.clock()
	if gap := at - int64(len(f.content)); gap > 0 {
		f.content = append(f.content, make([]byte, gap)...)
	}
	overwritten := copy(f.content[at:], p)
	f.content = append(f.content, p[overwritten:]...)
	return len(p), nil
}

func (f *memoryFile) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if size < int64(len(f.content)) {
		f.content = slices.Clone(f.content[:size])
	} else {
		f.content = append(f.content, make([]byte, size-int64(len(f.content)))...)
	}
	return nil
}

func (f *memoryFile) Sync() error  { return nil }
func (f *memoryFile) Close() error { return nil }
