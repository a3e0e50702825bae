package kafka

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Errors of Err.
var (
	errRefuses = errors.New("the embedded broker refuses records until it can write")
	errFailed  = errors.New("the embedded broker could not sync its log, and refuses records of some partitions until the next start")
)

// Err returns why records are refused, or nil. A partition that could not
// append tries again with the next record, which may never come, so its
// refusal counts only while the directory still can't be written to.
func (b *Broker) Err() error {
	stats := b.store.Stats()
	if stats.Failed > 0 {
		return errFailed
	}
	if dir := b.store.Dir(); stats.Refusing > 0 && dir != "" {
		if err := tryWrite(filepath.Join(dir, "probe")); err != nil {
			return fmt.Errorf("%w: %w", errRefuses, err)
		}
	}
	return nil
}

// tryWrite writes a file to the disk, and removes it.
func tryWrite(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 4<<10))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(path))
}
