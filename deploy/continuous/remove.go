package continuous

import (
	"errors"
	"os"
)

// remove removes surplus base backups, and the log that none needs.
func (b bases) remove() error {
	bases, err := b.folder.bases()
	if err != nil {
		return err
	}
	kept := b.kept(bases)
	for _, base := range bases {
		if kept[base.Name] {
			continue
		}
		dir := b.folder.base(base.Name)
		if err := errors.Join(os.Rename(dir, dir+partial), os.RemoveAll(dir+partial)); err != nil { // a killed process leaves none that looks whole
			return err
		}
	}
	return b.removeLog(bases, kept)
}

// kept returns the newest base backups, and the last one that was restored.
func (b bases) kept(bases []Base) map[string]bool {
	kept, verified := map[string]bool{}, ""
	for i, base := range bases {
		if i >= len(bases)-b.Keep {
			kept[base.Name] = true
		}
		if base.Verified != nil {
			verified = base.Name
		}
	}
	kept[verified] = true
	return kept
}

// removeLog removes the log before the oldest base backup of each
// stretch, and stretches without any.
func (b bases) removeLog(bases []Base, kept map[string]bool) error {
	oldest := map[string]Base{} // bounded by what is kept
	for _, base := range bases {
		if _, known := oldest[base.Stretch]; kept[base.Name] && !known {
			oldest[base.Stretch] = base
		}
	}
	_, current, _ := b.progress.now()
	names, err := b.folder.names("wal")
	for _, name := range names {
		base, needed := oldest[name]
		switch {
		case needed:
			w, failed := openWAL(b.folder.stretch(name), base.Segment)
			err = errors.Join(err, failed, w.removeBefore(base.Start))
		case name != current && current != "" && len(bases) > 0 && name < bases[len(bases)-1].Stretch:
			err = errors.Join(err, os.RemoveAll(b.folder.stretch(name)))
		}
	}
	return err
}
