package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/pg"
)

// Handle turns a function that returns its error into a handler. It
// answers with a Problem as it is, and with a 500 without details for
// other errors, which it logs with the request's id. If the answer has
// begun, it closes the connection: a part must not look whole.
func Handle(handle func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			CutBegun(w, r, err)
			writeError(w, r, err)
		}
	}
}

// CutBegun ends the connection where the answer has begun: what follows
// would look like a part of it.
func CutBegun(w http.ResponseWriter, r *http.Request, err error) {
	if hasBegun(w) {
		cut(r, err)
	}
}

// hasBegun reports whether the answer's status was sent, by the
// router's own writer under w.
func hasBegun(w http.ResponseWriter) bool {
	for {
		if watched, ok := w.(interface{ Status() int }); ok {
			return watched.Status() != 0
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapper.Unwrap()
	}
}

// cut ends an answer that can't be finished. It is no failure of ours
// if the reader has gone.
func cut(r *http.Request, err error) {
	if !errors.Is(err, ErrReaderTooSlow) && r.Context().Err() == nil {
		_ = hide(r, err)
	}
	panic(http.ErrAbortHandler)
}

// writeError answers with err (see Handle).
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	writeProblem(w, r, AsProblem(r, err))
}

// AsProblem returns what the client of r reads of err (see Handle).
func AsProblem(r *http.Request, err error) *Problem {
	var problem *Problem
	if errors.As(err, &problem) {
		return problem.redacted()
	}
	return hide(r, err)
}

// hide logs an error not meant for clients and returns what they see instead.
func hide(r *http.Request, err error) *Problem {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return Unavailable("The request was cancelled.", time.Second)
	}
	if r.Context().Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		Logger(r.Context()).Error("request took too long", slog.String("method", r.Method), slog.String("path", Redact(r.URL.Path)))
		return Unavailable("The database did not answer in time, and the change may have been made or not. Look, or send the whole request again.", time.Second)
	}
	if reads(r) && pg.IsData(err) {
		return NewProblem(http.StatusBadRequest, CodeInvalidRequest,
			"A value of the path or the query is none that anything could have, such as a text with U+0000. Correct it.")
	}
	Logger(r.Context()).Error("request failed", slog.String("method", r.Method), slog.String("path", Redact(r.URL.Path)),
		slog.String("error", Redact(err.Error())))
	if pg.IsTransient(err) {
		return Unavailable("The service is unavailable for the moment. Send the whole request again.", time.Second)
	}
	return NewProblem(http.StatusInternalServerError, CodeInternal,
		"Something failed on our side. If it happens again, report the request_id.")
}

// reads reports whether r only reads. A value that the database refuses
// then came from the client.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

func writeProblem(w http.ResponseWriter, r *http.Request, problem *Problem) {
	body, err := problem.body(RequestID(r.Context()))
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	for name, values := range problem.Header {
		w.Header()[name] = values
	}
	writeWhole(w, problem.Status, "application/problem+json", body)
}

// WriteJSON answers with value. It panics if value can't be encoded,
// which is a bug.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("BUG: cannot encode an answer: " + err.Error())
	}
	writeWhole(w, status, "application/json", body)
}

// writeWhole answers with body and its length, so that the client sees
// its end at once.
func writeWhole(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Bounds of an answer sent piece by piece. A reader slower than a piece in
// pieceTimeout is closed: it must not hold memory and a place in a queue.
const (
	pieceSize     = 32 << 10
	pieceTimeout  = 20 * time.Second
	answerTimeout = 10 * time.Minute // for the whole answer, at any pace
)

// ErrReaderTooSlow ends a PacedWriter: the reader of the answer is too
// slow, or gone.
var ErrReaderTooSlow = errors.New("the reader of the answer is too slow or has gone")

// A PacedWriter sends a long answer in pieces, each with its own
// deadline, and fails with ErrReaderTooSlow once a piece is not read in
// time. It holds one piece; Flush sends it and must be called at the
// end. Only Stop may be called concurrently.
type PacedWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	ends     time.Time
	piece    []byte
	failure  error
	stopped  atomic.Bool
	deadline func() time.Time // of the next piece
}

// NewPacedWriter returns one for an answer that begins now. Set headers
// and status on w before the first write.
func NewPacedWriter(w http.ResponseWriter) *PacedWriter {
	return newPacedWriter(w, pieceTimeout, answerTimeout)
}

// LongestEvents is how long an answer of events may last.
const LongestEvents = 24 * time.Hour

// NewEventWriter returns one for an answer of events, TypeEvents, which may
// come for as long as longest.
func NewEventWriter(w http.ResponseWriter, longest time.Duration) *PacedWriter {
	LastLonger(w, longest)
	return newPacedWriter(w, pieceTimeout, longest)
}

// LastLonger replaces the server's limits of a request by a longer one.
func LastLonger(w http.ResponseWriter, longest time.Duration) {
	control, ends := http.NewResponseController(w), time.Now().Add(longest) //nolint:forbidigo // sockets use the system's time
	_ = control.SetReadDeadline(ends)                                       // HTTP/1 reads ahead, and takes a timeout for the client's end
	_ = control.SetWriteDeadline(ends)
}

func newPacedWriter(w http.ResponseWriter, piece, answer time.Duration) *PacedWriter {
	now := time.Now //nolint:forbidigo // sockets use the system's time
	ends := now().Add(answer)
	return &PacedWriter{w: w, control: http.NewResponseController(w), ends: ends, deadline: func() time.Time {
		if next := now().Add(piece); next.Before(ends) {
			return next
		}
		return ends
	}}
}

// Write takes text, and sends each full piece.
func (p *PacedWriter) Write(text []byte) (int, error) {
	taken := 0
	for taken < len(text) && p.failure == nil {
		n := min(pieceSize-len(p.piece), len(text)-taken)
		p.piece = append(p.piece, text[taken:taken+n]...)
		taken += n
		if len(p.piece) == pieceSize {
			_ = p.Flush()
		}
	}
	return taken, p.failure
}

// Flush sends the rest and waits until the connection has taken it.
func (p *PacedWriter) Flush() error {
	if p.failure != nil {
		return p.failure
	}
	_ = p.control.SetWriteDeadline(p.deadline()) // only a test's writer has no deadlines
	if p.stopped.Load() {                        // after the deadline was set: Stop sets a past one
		p.failure = ErrReaderTooSlow
		return p.failure
	}
	_, err := p.w.Write(p.piece)
	if flushing := p.control.Flush(); err == nil && !errors.Is(flushing, http.ErrNotSupported) {
		err = flushing
	}
	if err != nil {
		p.failure = fmt.Errorf("%w: %w", ErrReaderTooSlow, err)
		return p.failure
	}
	p.piece = p.piece[:0]
	_ = p.control.SetWriteDeadline(p.ends) // the handler may take longer for the next piece than sending may
	return nil
}

// Stop makes the current write, and all later ones, fail. Any goroutine
// may call it until the handler has returned.
func (p *PacedWriter) Stop() {
	p.stopped.Store(true)
	StopWriting(p.w)
}

// StopWriting makes a current Write fail by a past deadline.
func StopWriting(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
}
