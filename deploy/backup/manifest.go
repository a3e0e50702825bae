package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
)

// ManifestName is the file that a whole backup has: it is written last.
const ManifestName = "manifest.json"

// format is the version of the manifest's form.
const format = 2

// A Manifest lists what a backup holds. It has no tenant's data.
type Manifest struct {
	Format  int               `json:"format"`
	Version string            `json:"version"` // of Weir
	At      time.Time         `json:"at"`      // of the first snapshot
	Modules map[string]Module `json:"modules"`
	Topics  map[string]Topic  `json:"topics,omitempty"` // as they were then; none if no broker answered
	Keys    []File            `json:"keys,omitempty"`   // files of secrets and certificates, if requested
}

// A Module is the copy of one module's schema, as it was at one instant.
type Module struct {
	Schema     string           `json:"schema"`
	Server     string           `json:"server"` // PostgreSQL's version
	At         time.Time        `json:"at"`
	Positions  []Position       `json:"positions"`
	Rows       map[string]int64 `json:"rows"` // of each table
	Privileges []Privilege      `json:"privileges"`
	Roots      []Root           `json:"roots,omitempty"` // of the ledger: they prove that the restored books are those copied
	Files      []File           `json:"files"`
}

// A Position is how far a consumer had applied a partition.
type Position struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Next      int64  `json:"next"`
	TopicID   string `json:"topic_id"`
}

// A Root is the root of the ledger's chains at the end of a day.
type Root struct {
	Hour          time.Time `json:"hour"`
	Root          string    `json:"root"`
	Organizations int64     `json:"organizations"`
}

// A Topic is a topic as the brokers had it.
type Topic struct {
	ID       string            `json:"id"`
	Settings map[string]string `json:"settings"`
	Logs     []Log             `json:"logs"` // of its partitions
}

// A Log is the range of a partition's records.
type Log struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// A File is a file of a backup, by its path in the folder.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func noBackup(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("cannot find the backup: %w", err)
	}
	return fmt.Errorf("%s is no finished backup, and has none in it: there is no %s", dir, ManifestName)
}

// Open reads the manifest of a backup.
func Open(dir string) (m Manifest, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, noBackup(dir)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("cannot read %s: %w", filepath.Join(dir, ManifestName), err)
	}
	if m.Format != format {
		return m, fmt.Errorf("the backup in %s has format %d, this program reads %d: take the program of version %s", dir, m.Format, format, m.Version)
	}
	return m, nil
}

// files returns all files that the manifest names.
func (m Manifest) files() (all []File) {
	for _, module := range m.Modules {
		all = append(all, module.Files...)
	}
	return append(all, m.Keys...)
}

// Check compares every file with its digest, and returns their bytes in all.
func (m Manifest) Check(dir string) (size int64, err error) {
	var damaged error
	for _, want := range m.files() {
		got, err := fileOf(dir, want.Path)
		if err == nil && got != want {
			err = fmt.Errorf("%s is not what was written: it has %d bytes with the digest %s, not %d with %s", want.Path, got.Size, got.SHA256, want.Size, want.SHA256)
		}
		damaged = errors.Join(damaged, err)
		size += want.Size
	}
	return size, damaged
}

// CheckFiles checks that every file is there with its size, without reading it.
func (m Manifest) CheckFiles(dir string) (err error) {
	for _, want := range m.files() {
		info, missing := os.Stat(filepath.Join(dir, want.Path))
		if missing == nil && info.Size() != want.Size {
			missing = fmt.Errorf("%s has %d bytes, not %d", want.Path, info.Size(), want.Size)
		}
		err = errors.Join(err, missing)
	}
	return err
}

// filesIn lists a part of the folder.
func filesIn(dir, part string) (files []File, err error) {
	err = filepath.WalkDir(filepath.Join(dir, part), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := fileOf(dir, relative)
		files = append(files, f)
		return err
	})
	return files, err
}

func fileOf(dir, path string) (f File, err error) {
	in, err := os.Open(filepath.Join(dir, path))
	if err != nil {
		return f, err
	}
	defer in.Close()
	sum := sha256.New()
	f.Path = filepath.ToSlash(path)
	if f.Size, err = io.Copy(sum, in); err != nil {
		return f, err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// write writes the manifest into the folder, durably.
func (m Manifest) write(dir string) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, ManifestName), string(raw)+"\n", 0o600)
}
