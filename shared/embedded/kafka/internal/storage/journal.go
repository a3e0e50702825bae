package storage

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// A journal is a log, how much of it is synced, and who waits for that.
// It has no lock: its partition does.
type journal struct {
	log
	condition
	listeners

	stable int64 // after the last record synced: readers get no others
	mark   mark  // of stable
}

// append puts a batch at the end of a file that has room for it: of
// fileBytes at most, unless the batch is larger.
func (j *journal) append(b batch.Batch, fileBytes int64) error {
	if err := j.mend(); err != nil {
		return err
	}
	switch {
	case len(j.segments) == 0:
		if err := j.begin(j.end); err != nil {
			return err
		}
	case j.last().size > 0 && j.last().size+int64(len(b)) > fileBytes:
		if err := j.roll(); err != nil {
			return err
		}
	}
	return j.write(b)
}

// roll begins another file. The one before is synced first, so that
// after a power cut no file but the last can be unfinished.
func (j *journal) roll() error {
	if err := j.mend(); err != nil {
		return err
	}
	last := j.last()
	if j.store.options.Sync {
		if err := j.store.syncSegment(last); err != nil {
			j.fail(notWritten(last.path, err))
			return j.failed
		}
		j.settle(j.end)
	}
	return j.begin(j.end)
}

// drop removes what is before an offset. If that is all, an empty file keeps
// the log's end.
func (j *journal) drop(offset int64) error {
	if offset == j.end && j.last().size > 0 {
		if err := j.writable(); err != nil {
			return err
		}
		if err := j.roll(); err != nil {
			return notWritten(j.dir, err)
		}
	}
	return j.removeBefore(offset)
}

// settle makes all before an offset readable, and answers its producers.
func (j *journal) settle(stable int64) {
	if stable <= j.stable {
		return
	}
	j.stable = stable
	if j.store.options.Sync {
		j.mark.set(j.store.options.FS, j.dir, stable)
	}
	j.reached(stable)
}

// fail closes the log for writing: after a failed sync the system
// may have dropped what was not written and take the rest for written,
// so only reading the file again tells what is there. Nothing that was
// not synced is acknowledged or read; it is cut off, or the next start
// could take it for synced.
func (j *journal) fail(cause error) {
	if j.failed != nil {
		return
	}
	j.failed = cause
	j.store.failed.Add(1)
	err := j.cut(j.stable)
	j.logger.Error("embedded broker: cannot sync the log; the partition refuses records until the next start", "error", errors.Join(cause, err))
	j.release(cause)
}

// A condition is whether a partition takes records.
type condition struct {
	logger   *slog.Logger
	refusing *atomic.Int64 // partitions
	failed   error         // why nothing can be appended until the next start; nil: it can
	refused  error         // why the last append failed; nil: it did not
	gone     bool          // deleted
}

func (c *condition) writable() error {
	if c.gone {
		return ErrUnknownTopic
	}
	return c.failed
}

func (c *condition) closed() bool { return c.gone || errors.Is(c.failed, os.ErrClosed) }

// refuse notes that an append to a directory failed.
func (c *condition) refuse(dir string, cause error) error {
	if c.failed != nil { // it failed for good, and said so
		return c.failed
	}
	if c.refused == nil {
		c.refusing.Add(1)
		c.logger.Error("embedded broker: cannot append to the log; the partition refuses records until it can", "error", cause)
	}
	c.refused = notWritten(dir, cause)
	return c.refused
}

// accept notes that an append succeeded.
func (c *condition) accept() {
	if c.refused != nil {
		c.refused = nil
		c.refusing.Add(-1)
		c.logger.Info("embedded broker: the log takes records again")
	}
}
