package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

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
