package http

import (
	"errors"
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

// stream answers with a line per matching entry. It reads page by page,
// each in its turn and transaction, and holds one at a time. Its
// trailers mark an early end.
func (l *Logs) stream(w http.ResponseWriter, r *http.Request, who identity.Principal, search ingest.Search) error {
	left, bounded := search.Limit, r.URL.Query().Get("limit") != ""
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
			beginStream(w)
		}
		left -= len(answer.Found)
		if err := writeLines(w, answer); err != nil {
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

func beginStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", httpapi.TypeLines)
	w.Header().Set("Trailer", trailerNext+", "+trailerIncomplete)
}

// writeLines sends a page and returns its memory. Each page has its own deadline.
func writeLines(w http.ResponseWriter, answer *searches.Answer) error {
	defer answer.Close()
	out := httpapi.NewPacedWriter(w)
	answer.AllowEviction(out.Stop)
	for i := range answer.Found {
		_, _ = out.Write(answer.Found[i].Text)
		_, _ = out.Write([]byte{'\n'})
	}
	return out.Flush()
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
