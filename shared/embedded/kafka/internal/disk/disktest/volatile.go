package disktest

import (
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// A Volatile is files in memory that remember what a power cut leaves of
// them: what was synced, and names whose directory was synced since.
type Volatile struct {
	mu      sync.Mutex
	names   map[string]*inode // of files and directories
	durable map[string]*inode // on the disk
}

var _ disk.FS = (*Volatile)(nil)

// An inode is a file or directory.
type inode struct {
	volatile *Volatile
	dir      bool
	content  []byte
	synced   []byte
}

func NewVolatile(root string) *Volatile {
	v := &Volatile{names: map[string]*inode{}, durable: map[string]*inode{}}
	v.names[root] = &inode{volatile: v, dir: true}
	v.durable[root] = v.names[root]
	return v
}

// A Remainder is what of writes that were not synced is on the disk
// after a power cut.
type Remainder int

const (
	Nothing Remainder = iota
	Zeros             // the size, and zeros from the first sector on that was not synced
	Holes             // the size, and zeros in each second sector that was not synced
	Garbage           // the size, and what was there before
	All
)

// sector is the smallest piece that a disk writes.
const sector = 512

// PowerCut returns the files after a power cut.
func (v *Volatile) PowerCut(root string, left Remainder) *Volatile {
	v.mu.Lock()
	defer v.mu.Unlock()
	after := NewVolatile(root)
	for name, node := range v.durable {
		if name == root || !v.isReachable(root, name) {
			continue
		}
		content := node.remainder(left)
		kept := &inode{volatile: after, dir: node.dir, content: content, synced: slices.Clone(content)}
		after.names[name], after.durable[name] = kept, kept
	}
	return after
}

func (v *Volatile) isReachable(root, name string) bool {
	for dir := path.Dir(name); dir != root; dir = path.Dir(dir) {
		if v.durable[dir] == nil {
			return false
		}
	}
	return true
}

func (n *inode) remainder(left Remainder) []byte {
	if left == Nothing {
		return slices.Clone(n.synced)
	}
	content := slices.Clone(n.content)
	lost := content[min(len(content), (len(n.synced)+sector-1)/sector*sector):]
	switch left {
	case Zeros:
		clear(lost)
	case Holes:
		for at := 0; at < len(lost); at += 2 * sector {
			clear(lost[at:min(at+sector, len(lost))])
		}
	case Garbage:
		for i := range lost {
			lost[i] = byte(i*i + 7)
		}
	}
	return content
}

func missing(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

func (v *Volatile) Open(name string) (disk.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := v.names[name]; n != nil && !n.dir {
		return n, nil
	}
	return nil, missing("open", name)
}

func (v *Volatile) Create(name string) (disk.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names[path.Dir(name)] == nil {
		return nil, missing("create", name)
	}
	if v.names[name] == nil {
		v.names[name] = &inode{volatile: v}
	}
	v.names[name].content = nil
	return v.names[name], nil
}

func (v *Volatile) List(dir string) (entries []disk.Entry, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names[dir] == nil {
		return nil, missing("list", dir)
	}
	for _, name := range slices.Sorted(maps.Keys(v.names)) {
		if n := v.names[name]; path.Dir(name) == dir && name != dir {
			entries = append(entries, disk.Entry{Name: path.Base(name), Dir: n.dir, Size: int64(len(n.content))})
		}
	}
	return entries, nil
}

func (v *Volatile) Rename(from, to string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.names[from]
	if n == nil || n.dir {
		return missing("rename", from)
	}
	delete(v.names, from)
	v.names[to] = n
	return nil
}

func (v *Volatile) RemoveAll(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.names, func(other string, _ *inode) bool { return other == name || strings.HasPrefix(other, name+"/") })
	return nil
}

func (v *Volatile) MakeDir(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for ; v.names[name] == nil; name = path.Dir(name) {
		v.names[name] = &inode{volatile: v, dir: true}
	}
	return nil
}

func (v *Volatile) SyncDir(dir string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	within := func(name string, _ *inode) bool { return path.Dir(name) == dir && name != dir }
	maps.DeleteFunc(v.durable, within)
	for name, n := range v.names {
		if within(name, n) {
			v.durable[name] = n
		}
	}
	return nil
}

func (v *Volatile) Stamp(string, time.Time) error { return nil }

func (n *inode) ReadAt(p []byte, at int64) (int, error) {
	n.volatile.mu.Lock()
	defer n.volatile.mu.Unlock()
	if at >= int64(len(n.content)) {
		return 0, io.EOF
	}
	if read := copy(p, n.content[at:]); read < len(p) {
		return read, io.EOF
	}
	return len(p), nil
}

func (n *inode) WriteAt(p []byte, at int64) (int, error) {
	n.volatile.mu.Lock()
	defer n.volatile.mu.Unlock()
	if gap := at + int64(len(p)) - int64(len(n.content)); gap > 0 {
		n.content = append(n.content, make([]byte, gap)...)
	}
	return copy(n.content[at:], p), nil
}

func (n *inode) Truncate(size int64) error {
	n.volatile.mu.Lock()
	defer n.volatile.mu.Unlock()
	n.content = append([]byte(nil), n.content[:size]...)
	return nil
}

func (n *inode) Sync() error {
	n.volatile.mu.Lock()
	defer n.volatile.mu.Unlock()
	n.synced = slices.Clone(n.content)
	return nil
}

func (n *inode) Close() error { return nil }
