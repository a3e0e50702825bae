package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// damagedDir holds what Repair has taken out of the logs.
const damagedDir = "damaged"

// A Cut is the end of a partition's log that Repair has moved aside.
type Cut struct {
	Topic     string
	Partition int

	From int64 // the offset at which the log ends now
	To   int64 // the offset at which it ended; -1: not known

	Bytes int64  // moved aside
	Kept  string // the directory that they are in; "": the log lacks them
}

// Repair cuts each damaged log of a directory at its first damage, and
// goes on without a damaged checkpoint. What it cuts off is in Cut.Kept,
// also if it is interrupted.
func Repair(options Options) (cuts []Cut, err error) {
	s := &Store{options: options, byName: map[string]*Topic{}, byID: map[TopicID]*Topic{}}
	if err := setAside(options); err != nil {
		return nil, err
	}
	known, err := s.load()
	if err != nil {
		return nil, err
	}
	for _, t := range s.Topics() {
		for n, p := range t.Partitions() {
			err := p.open(known.Partitions[p.name])
			if errors.Is(err, ErrDamaged) {
				var cut Cut
				cut, err = cutDamage(p, n, known)
				cuts = append(cuts, cut)
			}
			if err = errors.Join(err, p.stop()); err != nil {
				return cuts, err
			}
		}
	}
	if len(cuts) == 0 {
		return nil, nil
	}
	return cuts, options.replace(checkpointFile, known)
}

// setAside moves the files aside that are damaged and not needed: without
// a checkpoint only consumers can tell that a log has lost its end, and
// the logs know the producers' ids.
func setAside(o Options) error {
	_, checkpointErr := o.readCheckpoint()
	for name, err := range map[string]error{checkpointFile: checkpointErr, idsFile: new(idBlock).read(o)} {
		if !errors.Is(err, ErrDamaged) {
			continue
		}
		fsys, place := o.FS, o.path(damagedDir)
		if err := fsys.MakeDir(place); err != nil {
			return err
		}
		if err := errors.Join(fsys.Rename(o.path(name), filepath.Join(place, name)), fsys.SyncDir(place), fsys.SyncDir(o.Dir)); err != nil {
			return err
		}
	}
	return nil
}

// cutDamage cuts the log where open found it damaged, and notes in known that
// it ends there.
func cutDamage(p *Partition, n int, known checkpoint) (Cut, error) {
	was := known.Partitions[p.name]
	acked := max(p.mark.at, was.End)
	c := Cut{Topic: p.topic.Name, Partition: n, From: p.end, To: -1}
	fsys := p.store.options.FS
	files, _, err := listSegments(fsys, p.dir)
	if err != nil {
		return c, err
	}
	place := filepath.Join(p.store.options.path(damagedDir), filepath.Base(p.dir))
	for i := range files {
		f := files[len(files)-1-i] // an interrupted repair leaves the log damaged
		sound := int64(0)
		for _, s := range p.segments {
			if s.path == f.path {
				sound = s.size
			}
		}
		if sound == f.Size && (sound > 0 || f.base <= p.end) {
			break
		}
		c.To = max(c.To, lastOf(fsys, f, sound))
		if err := moveAside(fsys, f, sound, place); err != nil {
			return c, err
		}
		c.Bytes, c.Kept = c.Bytes+f.Size-sound, place
	}
	if acked > c.From {
		c.To = max(c.To, acked)
	}
	// The mark may be beyond the end that the log has now.
	if err := errors.Join(fsys.RemoveAll(filepath.Join(p.dir, markFile)), p.store.options.syncDir(p.dir)); err != nil {
		return c, err
	}
	known.Partitions[p.name] = bounds{min(was.Start, c.From), c.From, nil}
	return c, nil
}

// lastOf returns the end of the last batch that can be read after a byte
// of a file; -1 for none.
func lastOf(fsys disk.FS, f found, from int64) int64 {
	end := int64(-1)
	file, err := fsys.Open(f.path)
	if err != nil {
		return end
	}
	defer file.Close()
	in := newScan(file)
	in.seek(from)
	for {
		b, err := in.next()
		if err != nil {
			return max(end, in.endOfBroken())
		}
		end = b.End()
	}
}

// endOfBroken returns what the head of a broken batch says; -1 if that
// is broken, too.
func (s *scan) endOfBroken() int64 {
	head := make(batch.Batch, batch.HeaderBytes)
	if n, _ := s.file.ReadAt(head, s.at); n < len(head) {
		return -1
	}
	if _, sound := batch.Prefix(head); !sound {
		return -1
	}
	return head.End()
}

// moveAside moves what a file has after its sound bytes.
func moveAside(fsys disk.FS, f found, sound int64, place string) error {
	if err := fsys.MakeDir(place); err != nil {
		return err
	}
	to := freeName(fsys, place, f.base)
	if sound == 0 {
		return errors.Join(fsys.Rename(f.path, to), fsys.SyncDir(place), fsys.SyncDir(filepath.Dir(f.path)))
	}
	from, err := fsys.Open(f.path)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := copyEnd(fsys, from, sound, f.Size, to); err != nil {
		return fmt.Errorf("cannot keep what is damaged of %q: %w", f.path, err)
	}
	return errors.Join(fsys.SyncDir(place), from.Truncate(sound), from.Sync())
}

// freeName returns a path that an earlier repair has not taken.
func freeName(fsys disk.FS, place string, base int64) string {
	taken := map[string]bool{}
	entries, _ := disk.ListOrNone(fsys, place)
	for _, e := range entries {
		taken[e.Name] = true
	}
	for n := 0; ; n++ {
		if name := fmt.Sprintf("%d-%d.dat", base, n); !taken[name] {
			return filepath.Join(place, name)
		}
	}
}

func copyEnd(fsys disk.FS, from disk.File, at, end int64, name string) error {
	to, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, at, end-at))
	return cmp.Or(errors.Join(err, to.Sync()), to.Close())
}
