package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping"
)

// format describes a data file.
const format = `The file holds one error a line, as JSON, and may be compressed with gzip:

  {"id": "SHOP-7", "group": "SHOP-2", "project": "shop", "created": "2013-05-01T09:30:00Z",
   "type": "java.io.IOException", "message": "no space left", "stack_trace": ["at a.B.c(B.java:1)"]}

group    names what people hold to be one fault: errors with the same are duplicates of each other
created  orders them; the halves are cut by it and by project
primary  false leaves the error out (a further trace of the same report)
unsure   true: it is a duplicate of nobody knows what, so that it is no proof of a false join`

// report is an error with its true duplicate.
type report struct {
	ID         string
	Group      string
	Project    string
	Created    moment
	Primary    *bool
	Unsure     bool
	Unlinked   bool `json:"dup_unlinked"` // unsure, as exports of trackers name it
	Type       string
	Message    string
	StackTrace []string `json:"stack_trace"`

	learned grouping.Learned // of its project, see learn
}

func (r *report) sent() grouping.Error {
	return grouping.Error{Type: r.Type, Message: r.Message, StackTrace: r.StackTrace, Learned: r.learned}
}

// moment is a time with or without a colon
// in its offset: trackers write both.
type moment struct{ time.Time }

func (m *moment) UnmarshalJSON(text []byte) (err error) {
	word := strings.Trim(string(text), `"`)
	if m.Time, err = time.Parse(time.RFC3339, word); err != nil {
		m.Time, err = time.Parse("2006-01-02T15:04:05.999-0700", word)
	}
	return err
}

// load reads the reports of a file, the earliest first.
func load(path string) ([]report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var lines io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if lines, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	reports, err := read(lines)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n\n%s", path, err, format)
	}
	return reports, nil
}

const longestLine = 16 << 20

func read(from io.Reader) (reports []report, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if r.Group == "" {
			return nil, fmt.Errorf("line %d: the error has no group", n)
		}
		if r.Primary == nil || *r.Primary {
			r.Unsure = r.Unsure || r.Unlinked
			reports = append(reports, r)
		}
	}
	slices.SortStableFunc(reports, func(a, b report) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), strings.Compare(a.ID, b.ID))
	})
	if len(reports) == 0 && lines.Err() == nil {
		return nil, errors.New("there is no error")
	}
	return reports, lines.Err()
}
