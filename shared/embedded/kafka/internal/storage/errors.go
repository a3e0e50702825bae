package storage

import (
	"errors"
	"fmt"
)

var (
	// ErrDamaged means that a data directory is not what was written there.
	ErrDamaged = errors.New("data directory damaged")

	// ErrNotWritten means that the disk refuses a write: whether it was
	// written is unknown, the same bytes may succeed later.
	ErrNotWritten = errors.New("cannot write to the log")

	ErrUnknownTopic = errors.New("unknown topic or partition")
	ErrTopicExists  = errors.New("topic exists")
	ErrOutOfRange   = errors.New("no such offset")

	// Errors of a producer's sequence.
	ErrOutOfOrder      = errors.New("sequence out of order")
	ErrFenced          = errors.New("epoch of an earlier producer")
	ErrUnknownProducer = errors.New("unknown producer")
)

// wayOut is the remedy for a damaged directory.
const wayOut = "weir resume goes on without what is damaged and says what is lost, or restore the directory from a copy"

func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s; %s", ErrDamaged, path, fmt.Sprintf(format, args...), wayOut)
}

// damagedRoot is damaged for what Repair can't repair.
func damagedRoot(path, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s; restore the directory from a copy, or move it away to start with an empty log", ErrDamaged, path, fmt.Sprintf(format, args...))
}

func notWritten(path string, cause error) error {
	return fmt.Errorf("%w %q: %w", ErrNotWritten, path, cause)
}
