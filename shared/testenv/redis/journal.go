package redis

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An entry is a command that may have changed something.
type entry struct {
	At      int64    `json:"at"`   // nanoseconds since 1970
	Client  int      `json:"from"` // which chose the database, and may be within MULTI
	Command [][]byte `json:"command"`
}

func (e entry) time() time.Time { return time.Unix(0, e.At) }

func (e entry) words() []string {
	var words []string
	for _, w := range e.Command {
		words = append(words, string(w))
	}
	return words
}

// A journal keeps commands in their order, one a line. Written entries
// survive the process, not the machine.
type journal struct {
	file *os.File
	out  *json.Encoder
}

// openJournal passes the entries to each and continues after them. It
// drops an incomplete last entry, whose command was not answered.
func openJournal(dir string, each func(entry)) (*journal, error) {
	file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := replay(file, each)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read what was kept in %q: %w", dir, err)
	}
	return &journal{file, json.NewEncoder(file)}, nil
}

func replay(file fs.File, each func(entry)) (end int64, err error) {
	in := json.NewDecoder(file)
	for {
		var e entry
		err := in.Decode(&e)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		each(e)
		end = in.InputOffset()
	}
}

func (j *journal) append(at time.Time, client int, command []string) error {
	e := entry{At: at.UnixNano(), Client: client}
	for _, word := range command {
		e.Command = append(e.Command, []byte(word))
	}
	return j.out.Encode(e)
}
