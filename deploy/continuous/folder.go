package continuous

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
)

// A Folder holds a continuous backup:
//
//	status.json                  what the doctor shows; everybody may read it
//	base/20261123T030000Z/       a base backup: base.tar.gz, backup_manifest, and base.json, written last
//	wal/20261122T101500Z/        a stretch of write-ahead log without a gap, and archived.json
//	scratch/                     a restore at work
//
// A new stretch begins where the server does not have what follows.
type Folder string

// Names in a folder.
const (
	statusFile   = "status.json"
	lockFile     = "lock"
	baseFile     = "base.json"
	archivedFile = "archived.json"
	tarFile      = "base.tar.gz"
	manifestFile = "backup_manifest"

	partial = ".partial"
	stamp   = "20060102T150405Z"
)

func (f Folder) path(parts ...string) string {
	return filepath.Join(append([]string{string(f)}, parts...)...)
}
func (f Folder) base(name string) string    { return f.path("base", name) }
func (f Folder) stretch(name string) string { return f.path("wal", name) }

// A Base is a whole base backup.
type Base struct {
	Name     string    `json:"-"`
	At       time.Time `json:"at"` // by the server's clock: it can be recovered as it was then, or later
	System   string    `json:"system"`
	Major    int       `json:"major"`
	Timeline uint32    `json:"timeline"`
	Start    LSN       `json:"start"`
	End      LSN       `json:"end"`
	Segment  uint64    `json:"segment"` // bytes of each file of the log
	Stretch  string    `json:"stretch"` // that has its log
	Bytes    int64     `json:"bytes"`

	Verified *Verified `json:"verified,omitempty"`
}

// Verified is a restore that was made and looked at.
type Verified struct {
	At      time.Time `json:"at"`
	Reached LSN       `json:"reached"`
	Commit  time.Time `json:"commit"` // the last that was there
	Seconds float64   `json:"seconds"`
}

// Archived is how far a stretch reaches: whatever was committed before
// that time is in it.
type Archived struct {
	System string    `json:"system"`
	At     time.Time `json:"at"`
	LSN    LSN       `json:"lsn"`
}

// Status is what others may know of the backup.
type Status struct {
	At       time.Time            `json:"at"` // when this was written
	Base     time.Time            `json:"base"`
	Archived time.Time            `json:"archived"`
	Verified time.Time            `json:"verified"`
	Bytes    map[string]int64     `json:"bytes"`    // by part: base, wal
	Failures map[string]time.Time `json:"failures"` // by part, its last failure since it last worked
}

// ReadStatus returns the status of a continuous backup in a directory;
// none: fs.ErrNotExist.
func ReadStatus(dir string) (s Status, err error) { return s, read(Folder(dir).path(statusFile), &s) }

// bases returns the whole base backups, oldest first.
func (f Folder) bases() (all []Base, err error) {
	names, err := f.names("base")
	for _, name := range names {
		b := Base{Name: name}
		if err := read(filepath.Join(f.base(name), baseFile), &b); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Base) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	return all, err
}

// names returns the finished folders of a part, oldest first.
func (f Folder) names(part string) (names []string, err error) {
	entries, err := os.ReadDir(f.path(part))
	for _, entry := range entries {
		if _, err := time.Parse(stamp, entry.Name()); err == nil && entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// removePartial removes what a killed process has left.
func (f Folder) removePartial() error {
	entries, err := os.ReadDir(f.path("base"))
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), partial) {
			err = errors.Join(err, os.RemoveAll(f.base(entry.Name())))
		}
	}
	return errors.Join(err, os.RemoveAll(f.path("scratch")))
}

// keep writes the description of a base backup.
func (b Base) keep(dir string) error { return write(filepath.Join(dir, baseFile), b, 0o600) }

func read(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	return nil
}

func write(path string, what any, mode fs.FileMode) error {
	raw, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, string(raw)+"\n", mode)
}

// bytesIn returns the size of all files below a directory.
func bytesIn(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}
