package http

import (
	"encoding/csv"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
)

// An export is a whole list, as lines of JSON or as CSV.
type export[T any] struct {
	pages   iter.Seq2[[]T, error]
	columns []string
	cells   func(T) []string // of a line of CSV
	body    func(T) any      // of a line of JSON
}

// write writes page by page and holds one at a time. A failure after
// the first page truncates the answer.
func (e export[T]) write(w http.ResponseWriter, mediaType string) error {
	out := httpapi.NewPacedWriter(w)
	var line func(T) error
	for page, err := range e.pages {
		if err != nil {
			return err
		}
		if line == nil {
			w.Header().Set("Content-Type", mediaType)
			line = e.lines(out, mediaType)
		}
		for _, item := range page {
			if err := line(item); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// lines writes the header of a CSV and returns the function that writes an item.
func (e export[T]) lines(out *httpapi.PacedWriter, mediaType string) func(T) error {
	if mediaType == httpapi.TypeLines {
		encoder := json.NewEncoder(out)
		return func(item T) error { return encoder.Encode(e.body(item)) }
	}
	table := csv.NewWriter(out)
	writeRow := func(cells []string) error {
		_ = table.Write(cells)
		table.Flush() // into out
		return table.Error()
	}
	_ = writeRow(e.columns) // out keeps the error
	return func(item T) error { return writeRow(e.cells(item)) }
}
