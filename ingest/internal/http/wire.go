package http

import (
	"io"
	"net/http"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
)

// A wire reads a body as it is sent, up to its limit, and only
// while it comes fast enough.
type wire struct {
	source   io.Reader
	control  *http.ResponseController
	clock    func() time.Time
	body     *Body
	pace     pace
	got, max int // bytes as they were sent
	inflated int // bytes after decompression
}

func newWire(w http.ResponseWriter, source io.Reader, b *Bodies, body *Body) *wire {
	return &wire{
		source: source, control: http.NewResponseController(w), clock: b.clock, body: body, pace: newPace(b.clock()), max: b.max + wireSlack,
	}
}

func (w *wire) Read(p []byte) (int, error) {
	left := w.pace.left(w.clock())
	if left <= 0 {
		return 0, errTooSlow
	}
	// The connection's own deadline, so the system's clock.
	_ = w.control.SetReadDeadline(time.Now().Add(left)) //nolint:forbidigo // see above
	if w.body.lease.Over() {                            // after the deadline was set: who ends a lease sets one that is over
		return 0, admission.ErrTakenAway
	}
	n, err := w.source.Read(p)
	if w.got += n; w.got > w.max {
		return n, errBodyTooLarge
	}
	return n, err
}

// stop makes a Read under way, and every later one, fail. Any
// goroutine may call it.
func (w *wire) stop() { _ = w.control.SetReadDeadline(time.Unix(1, 0)) }

// finish ends the deadline for reading and begins that of the answer: a slow
// body must not leave stored entries unanswered.
func (w *wire) finish() {
	_ = w.control.SetReadDeadline(time.Time{})
	_ = w.control.SetWriteDeadline(time.Now().Add(answerTime)) //nolint:forbidigo // the connection's deadline
}
