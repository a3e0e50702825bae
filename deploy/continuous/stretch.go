package continuous

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/embedded/postgres"
)

// zipped ends the names of whole files that were compressed.
const zipped = ".gz"

// A wal is the files of a stretch.
type wal struct {
	dir   string
	size  uint64             // of a segment
	whole map[uint64]segment // by number, of the newest timeline; bounded by what is kept
	last  uint64             // number of the newest whole one; 0: none
	next  segment            // that is being received; number 0: none
}

func openWAL(dir string, size uint64) (w wal, err error) {
	w = wal{dir: dir, size: size, whole: map[uint64]segment{}}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if s, ok := segmentOf(strings.TrimSuffix(entry.Name(), partial), size); ok && strings.HasSuffix(entry.Name(), partial) && s.number > w.next.number {
			w.next = s
		}
		if s, ok := segmentOf(strings.TrimSuffix(entry.Name(), zipped), size); ok {
			if s.timeline >= w.whole[s.number].timeline {
				w.whole[s.number] = s
			}
			w.last = max(w.last, s.number)
		}
	}
	if w.next.number <= w.last {
		w.next = segment{}
	}
	return w, err
}

// follows checks that no file is missing from a position on.
func (w wal) follows(start LSN) error {
	for n := start.segment(w.size); n <= w.last; n++ {
		if _, found := w.whole[n]; !found {
			return w.missing(n)
		}
	}
	if w.next.number > w.last+1 {
		return w.missing(w.last + 1)
	}
	return nil
}

func (w wal) missing(number uint64) error {
	return fmt.Errorf("the file %s of the write-ahead log is missing in %s", segment{w.whole[w.last].timeline, number}.name(w.size), w.dir)
}

// compress compresses whole files. Both forms are valid at any time.
func (w wal) compress(account postgres.Account) error {
	for _, s := range w.whole {
		path := filepath.Join(w.dir, s.name(w.size))
		plain, err := os.Open(path)
		if os.IsNotExist(err) {
			continue // it is compressed
		}
		if err == nil {
			err = errors.Join(zip(path+zipped, plain), plain.Close())
		}
		if err == nil {
			err = account.Chown(path + zipped)
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			return fmt.Errorf("cannot compress %s: %w", path, err)
		}
	}
	return nil
}

func zip(path string, from io.Reader) error {
	return atomicfile.WriteFrom(path, 0o600, func(to io.Writer) error {
		zipping, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
		if err != nil {
			return err
		}
		_, err = io.Copy(zipping, from)
		return errors.Join(err, zipping.Close())
	})
}

// copyTo writes a segment as PostgreSQL has it.
func (w wal) copyTo(path string, s segment) error {
	from, err := w.open(s)
	if err != nil {
		return err
	}
	defer from.Close()
	return atomicfile.WriteFrom(path, 0o600, func(to io.Writer) error {
		_, err := io.Copy(to, from)
		return err
	})
}

// open reads a segment: whole, compressed or not, or the one that is
// being received.
func (w wal) open(s segment) (io.ReadCloser, error) {
	path := filepath.Join(w.dir, s.name(w.size))
	for _, name := range []string{path, path + partial} {
		if plain, err := os.Open(name); !os.IsNotExist(err) {
			return plain, err
		}
	}
	return unzip(path + zipped)
}

// unzip opens a compressed file.
func unzip(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	from, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{from, file}, nil
}

// removeTorn removes a file that PostgreSQL's receiver could not fill
// before its disk was full, or it was killed: it would refuse it forever.
func (w wal) removeTorn() error {
	names, err := filepath.Glob(filepath.Join(w.dir, "*"+partial))
	for _, name := range names {
		if info, missing := os.Stat(name); missing == nil && info.Size() != 0 && uint64(info.Size()) != w.size { //nolint:gosec // positive
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// removeBefore removes the files before a position.
func (w wal) removeBefore(start LSN) (err error) {
	for number, s := range w.whole {
		if number >= start.segment(w.size) {
			continue
		}
		for _, ending := range []string{"", zipped} {
			if gone := os.Remove(filepath.Join(w.dir, s.name(w.size)+ending)); gone != nil && !os.IsNotExist(gone) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// restoreCommand has PostgreSQL read the files of a stretch. A file that
// is there and can't be read ends the recovery: a missing one is the end
// of the log.
func restoreCommand(dir string) (string, error) {
	if strings.ContainsAny(dir, "'%\\\n") {
		return "", fmt.Errorf("the directory %q has characters that PostgreSQL's restore_command can't have: rename it", dir)
	}
	const command = `f='%s/%%f'; if [ -f "$f" ]; then cp "$f" "%%p" || exit 255; ` +
		`elif [ -f "$f.gz" ]; then gzip -dc "$f.gz" > "%%p" || exit 255; else exit 1; fi`
	return fmt.Sprintf(command, dir), nil
}
