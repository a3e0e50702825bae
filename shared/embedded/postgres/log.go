package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// The limit of a log: this many bytes, and those written between two
// looks. The former log beside it has the same.
const (
	maxLog      = 10 << 20
	logInterval = 10 * time.Second // between looks
)

// A serverLog is the file that a server appends its log to.
type serverLog struct {
	path    string
	account account
}

// former returns the path of the log rotated last.
func (l serverLog) former() string { return l.path + ".1" }

// open creates a missing log, rotates a long one, and returns its length.
func (l serverLog) open(most int64) (int64, error) {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(file.Close(), l.account.chown(l.path), l.rotate(most)); err != nil {
		return 0, err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rotate copies a log longer than most bytes to former and empties it.
// The server keeps its open file: lines written meanwhile may be lost.
func (l serverLog) rotate(most int64) error {
	info, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed
	}
	if err != nil || info.Size() <= most {
		return err
	}
	if err := l.copy(); err != nil {
		return fmt.Errorf("cannot keep the log of PostgreSQL as %q: %w", l.former(), err)
	}
	return os.Truncate(l.path, 0)
}

func (l serverLog) copy() error {
	from, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(l.former(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// since reads the log from an offset on, up to a limit.
func (l serverLog) since(from int64) (string, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.NewSectionReader(file, from, maxLog))
	return string(raw), err
}

// tailBytes is enough for the last lines of all processes.
const tailBytes = 64 << 10

// tail reads the end of the log.
func (l serverLog) tail() (string, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return "", err
	}
	return l.since(max(info.Size()-tailBytes, 0))
}

// keep rotates the log whenever it is longer than most, until the
// returned function is called.
func (l serverLog) keep(most int64, interval time.Duration, logger logger) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = lifecycle.Every(ctx, interval, func(context.Context) error { return l.rotate(most) }, lifecycle.Warn(logger, "cannot rotate the log of PostgreSQL"))
	}()
	return func() {
		cancel()
		<-ended
	}
}
