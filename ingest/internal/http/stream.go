package http

import (
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// Bounds of an answer in lines.
const (
	streamPage = 1 << 20   // bytes that it holds in memory at once
	streamTime = time.Hour // in all
)

// The trailers of an answer in lines. An answer that was cut has none of them.
const (
	trailerNext       = "Weir-Next-Cursor"
	trailerIncomplete = "Weir-Incomplete"
)

// Stream answers with a line per matching entry: its text, or with
// httpapi.TypeCSV a row of a table. It reads page by page, each in its
// turn and transaction, and holds one at a time. Its trailers mark an early
// end. It ends at search.Limit entries; 0: with the last.
func (l *Logs) Stream(w http.ResponseWriter, r *http.Request, search ingest.Search, media string) error {
	who, left, bounded := identity.FromContext(r.Context()), search.Limit, search.Limit > 0
	search.MaxBytes = streamPage
	for ends, begun := l.Clock().Add(streamTime), false; ; begun = true {
		if search.Limit = httpapi.MaxLimit; bounded {
			search.Limit = min(left, httpapi.MaxLimit)
		}
		answer, err := l.Service.Search(r.Context(), who, search)
		if begun && isOverload(err) {
			return endStream(w, r, &search.Start, true)
		}
		if err != nil {
			return NotFound(err, search)
		}
		if !begun {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Trailer", trailerNext+", "+trailerIncomplete)
		}
		left -= len(answer.Found)
		if err := writeLines(w, answer, media, !begun); err != nil {
			return err
		}
		late := !l.Clock().Before(ends)
		if answer.Next == nil || bounded && left == 0 || late {
			return endStream(w, r, answer.Next, late && answer.Next != nil)
		}
		search.Start = *answer.Next
	}
}

func isOverload(err error) bool {
	var problem *httpapi.Problem
	return errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests
}

// writeLines sends a page and returns its memory. Each page has its own deadline.
func writeLines(w http.ResponseWriter, answer *searches.Answer, media string, first bool) error {
	defer answer.Close()
	out := httpapi.NewPacedWriter(w)
	answer.AllowEviction(out.Stop)
	if media == httpapi.TypeCSV {
		writeRows(out, answer.Found, first)
		return out.Flush()
	}
	for i := range answer.Found {
		_, _ = out.Write(answer.Found[i].Text)
		_, _ = out.Write([]byte{'\n'})
	}
	return out.Flush()
}

// writeRows writes entries as rows of a table, the first page with its head.
func writeRows(out io.Writer, found []ingest.Found, first bool) {
	table := csv.NewWriter(out)
	defer table.Flush() // out keeps the error
	if first {
		_ = table.Write([]string{"timestamp", "received_at", "level", "environment", "project", "message", "entry"})
	}
	for i := range found {
		of := &found[i]
		message := ""
		if read, err := ingest.ReadBack(of.Text); err == nil {
			message = string(read.Message)
		}
		_ = table.Write([]string{
			of.Time.String(), of.ReceivedAt.Format(time.RFC3339Nano), of.Level.String(), httpapi.CSVText(of.Environment), of.Project,
			httpapi.CSVText(message), string(of.Text),
		})
	}
}

// endStream sends where the next answer continues, and whether this one
// ended early.
func endStream(w http.ResponseWriter, r *http.Request, next *ingest.Position, incomplete bool) error {
	if cursor := NextCursor(r, next); cursor != nil {
		w.Header().Set(trailerNext, *cursor)
	}
	w.Header().Set(trailerIncomplete, strconv.FormatBool(incomplete))
	return nil
}
