package shipper

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A Line is one of a file or a stream, without its end.
type Line struct {
	Text []byte
	from *opened // nil: of a stream
	end  int64   // in the file
}

// maxLine is how much of a line is read at once, in bytes: more is another line.
const maxLine = 400 << 10

// Stream reads the lines of a stream until it ends.
func Stream(ctx context.Context, of io.Reader, lines chan<- Line) error {
	scanner := bufio.NewScanner(of)
	scanner.Buffer(make([]byte, 0, 64<<10), 2*maxLine)
	scanner.Split(split)
	for scanner.Scan() {
		if err := send(ctx, lines, Line{Text: scanner.Bytes()}); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// split is bufio.ScanLines with lines of at most maxLine.
func split(data []byte, atEnd bool) (advance int, token []byte, err error) {
	advance, token, err = bufio.ScanLines(data, atEnd)
	if token == nil && len(data) >= maxLine {
		return maxLine, data[:maxLine], nil
	}
	return advance, token, err
}

func send(ctx context.Context, lines chan<- Line, line Line) error {
	if len(bytes.TrimSpace(line.Text)) == 0 {
		return nil
	}
	line.Text = bytes.Clone(line.Text)
	select {
	case lines <- line:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pollInterval is how often a followed file is looked at.
const pollInterval = 250 * time.Millisecond

// A Follower reads the lines of a file as they are written. It goes on with
// the next file of that name, and where it was when its process ended.
type Follower struct {
	Path     string
	StateDir string // has a file with the position for each followed one

	file   *opened // nil: none of that name is there
	offset int64   // behind the last whole line
}

// An opened file is one of those that had a followed name.
type opened struct {
	*os.File
	path, state string
}

// A position is how far a file was sent: Head tells it from the next of its name.
type position struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Size   int    `json:"head_bytes"`
	Head   string `json:"head"`
}

// headBytes are those at a file's start by which it is known.
const headBytes = 256

// Follow sends lines until ctx ends.
func (f *Follower) Follow(ctx context.Context, lines chan<- Line) error {
	defer func() {
		if f.file != nil {
			_ = f.file.Close()
		}
	}()
	for ctx.Err() == nil {
		if err := f.poll(ctx, lines); err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot follow %q: %w", f.Path, err)
		}
		lifecycle.Pause(ctx, pollInterval)
	}
	return nil
}

// poll reads what was written, and goes on to the next file once the present one has no more.
func (f *Follower) poll(ctx context.Context, lines chan<- Line) error {
	if f.file == nil {
		if err := f.open(); err != nil || f.file == nil {
			return err
		}
	}
	if err := f.read(ctx, lines); err != nil {
		return err
	}
	present, err := f.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // until the next one is there
	case err != nil:
		return err
	case !os.SameFile(present, named):
		if err := f.read(ctx, lines); err != nil { // what came between
			return err
		}
		err := f.file.Close()
		f.file = nil
		return err
	case present.Size() < f.offset:
		f.offset = 0
	}
	return nil
}

// open opens the file where it was left, if it is the same.
func (f *Follower) open() error {
	file, err := os.Open(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.file, f.offset = &opened{file, f.Path, f.stateFile()}, 0
	text, err := os.ReadFile(f.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var left position
	if err := json.Unmarshal(text, &left); err != nil {
		return fmt.Errorf("cannot read its position in %q, remove that to begin at its start: %w", f.stateFile(), err)
	}
	info, err := file.Stat()
	if head, headErr := f.file.head(left.Size); err == nil && headErr == nil && head == left.Head && info.Size() >= left.Offset {
		f.offset = left.Offset
	}
	return err
}

// read sends the whole lines that were written since.
func (f *Follower) read(ctx context.Context, lines chan<- Line) error {
	buffer := make([]byte, 2*maxLine)
	for {
		n, err := f.file.ReadAt(buffer, f.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		read := 0
		for read < n {
			advance, line, _ := split(buffer[read:n], false)
			if advance == 0 {
				break
			}
			read += advance
			if err := send(ctx, lines, Line{line, f.file, f.offset + int64(read)}); err != nil {
				return err
			}
		}
		if f.offset += int64(read); read == 0 {
			return nil
		}
	}
}

func (o *opened) head(bytes int) (string, error) {
	text := make([]byte, bytes)
	_, err := o.ReadAt(text, 0)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// keep keeps how far the file was sent. If that fails, lines are sent again
// after a start; if it was closed, the next one of its name is sent already.
func (o *opened) keep(offset int64) {
	size := int(min(offset, headBytes))
	if head, err := o.head(size); err == nil {
		text := encode(position{o.path, offset, size, head})
		_ = atomicfile.Write(o.state, string(text)+"\n", 0o600)
	}
}

func (f *Follower) stateFile() string {
	path, err := filepath.Abs(f.Path)
	if err != nil {
		path = f.Path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(f.StateDir, hex.EncodeToString(sum[:8])+".json")
}
