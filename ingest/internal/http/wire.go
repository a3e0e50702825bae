package http

import (
	"io"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// A wire reads a body as it is sent, up to its limit, and only
// while it comes fast enough.
type wire struct {
	source   io.Reader
	control  *http.ResponseController
	clock    func() time.Time
	body     *Body
	packed   bool
	pace     pace
	got, max int // bytes as they were sent
	inflated int // bytes after decompression
	reads    int
}

func newWire(w http.ResponseWriter, r *http.Request, b *Bodies, body *Body, how encoding) *wire {
	return &wire{
		source: r.Body, control: http.NewResponseController(w), clock: b.clock, body: body, packed: how != identityEncoding,
		pace: newPace(b.clock()), max: b.max + wireSlack,
	}
}

// padding is how much of a compressed body may come without content: a
// block of zstd, and what is buffered of it first.
const padding = 512 << 10

// perRead is charged for each chunk of an ordinary body: chunks of a
// byte cost more than their content.
const perRead = 4 << 10

// perPadding is what each byte of mostly padding counts as waste: a
// block of five bytes is as much work as many of content.
const perPadding = 8

// charge returns what an ordinary body takes of its holder's share.
func (w *wire) charge() int64 { return int64(max(w.got, w.inflated) + w.reads*perRead) }

func (w *wire) Read(p []byte) (int, error) {
	left := w.pace.left(w.clock())
	if left <= 0 {
		return 0, errTooSlow
	}
	// The connection's own deadline, so the system's clock.
	_ = w.control.SetReadDeadline(time.Now().Add(left)) //nolint:forbidigo // see above
	if w.body.lease.Evicted() {                         // after the deadline was set: who ends a lease sets one that is over
		return 0, fairshare.ErrEvicted
	}
	n, err := w.source.Read(p)
	w.reads++
	switch w.got += n; {
	case w.got > w.max:
		return 0, errBodyTooLarge // without the bytes: who has those it needs passes over an error
	case w.packed && w.got > 2*w.inflated+padding:
		return 0, errPadded
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
