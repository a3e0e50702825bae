package http

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// How slowly a body may come: it has bodyPatience to begin with, a second for each minRate bytes, and bodyTime in all.
// Then the answer has answerTime.
const (
	bodyPatience = 15 * time.Second
	minRate      = 16 << 10
	bodyTime     = 3 * time.Minute
	answerTime   = time.Minute
)

// wireSlack is how much larger than its limit a body may be while it is compressed: data that does not compress grows.
const wireSlack = 1 << 20

// firstBuffer is the most that is lent to a body before any of it has come: what a client says of its length is only
// believed bit by bit.
const firstBuffer = 1 << 20

// Bodies reads bodies whole and decompressed, into lent memory.
type Bodies struct {
	Buffers *Buffers
	Max     int // bytes after decompression

	decompressors decompressors
}

// wire reads a body as it comes, and no more of it than it may have.
type wire struct {
	body     io.Reader
	control  *http.ResponseController
	started  time.Time
	got, max int
}

var errBodyTooLarge = errors.New("the body is larger than the limit")

func (w *wire) Read(p []byte) (int, error) {
	// The connection's own deadline, so the system's clock.
	patience := min(bodyPatience+time.Duration(w.got/minRate)*time.Second, bodyTime)
	_ = w.control.SetReadDeadline(w.started.Add(patience))
	n, err := w.body.Read(p)
	if w.got += n; w.got > w.max {
		return n, errBodyTooLarge
	}
	return n, err
}

// finish ends the deadline for reading and begins the one for the answer: what is stored must not go unanswered because
// its body took long.
func (w *wire) finish() {
	_ = w.control.SetReadDeadline(time.Time{})
	_ = w.control.SetWriteDeadline(time.Now().Add(answerTime)) //nolint:forbidigo // the connection's deadline
}

// Read reads the body of r. The buffer has to be given back, also after an error if it is not nil.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, how encoding) (*Buffer, error) {
	if r.ContentLength > int64(b.Max) && (how == identityEncoding || r.ContentLength > int64(b.Max+wireSlack)) {
		return nil, b.tooLarge()
	}
	source := &wire{
		body: r.Body, control: http.NewResponseController(w), max: b.Max + wireSlack,
		started: time.Now(), //nolint:forbidigo // the connection's deadline
	}
	reader, closeReader, err := b.decompressors.open(how, source)
	if err != nil {
		return nil, b.problem(err, how)
	}
	defer closeReader()
	buffer, err := b.fill(reader, b.expected(r, how))
	source.finish()
	if err != nil {
		return buffer, b.problem(err, how)
	}
	return buffer, nil
}

// expected is how large a body may be believed to be.
func (b *Bodies) expected(r *http.Request, how encoding) int {
	size := min(max(r.ContentLength, 0), int64(b.Max))
	if how != identityEncoding {
		size *= 4
	}
	return int(min(size+1, firstBuffer))
}

func (b *Bodies) fill(reader io.Reader, expected int) (*Buffer, error) {
	buffer, err := b.Buffers.Lend(expected)
	if err != nil {
		return nil, err
	}
	for {
		if len(buffer.room()) == 0 {
			if buffer, err = b.Buffers.Grow(buffer, min(2*len(buffer.Bytes), max(b.Max, len(buffer.Bytes))+1)); err != nil {
				return buffer, err
			}
		}
		n, err := reader.Read(buffer.room())
		buffer.Bytes = buffer.Bytes[:len(buffer.Bytes)+n]
		switch {
		case len(buffer.Bytes) > b.Max:
			return buffer, errBodyTooLarge
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return buffer, err
		}
	}
}

func (b *Bodies) tooLarge() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusBadRequest, "body_too_large",
		fmt.Sprintf("The body has more than %d bytes after decompression. Send fewer entries in one request.", b.Max)).With("limit", b.Max)
}

// problem says what went wrong while a body was read.
func (b *Bodies) problem(err error, how encoding) error {
	switch {
	case errors.Is(err, errOverloaded):
		return overloaded()
	case errors.Is(err, errBodyTooLarge):
		return b.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return httpapi.NewProblem(http.StatusBadRequest, "incomplete_body", "The body came too slowly.").WithHeader("Connection", "close")
	case how == identityEncoding:
		return httpapi.NewProblem(http.StatusBadRequest, "incomplete_body", "The body ended before its announced length.")
	}
	return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding", fmt.Sprintf("The body can't be read as %s.", how))
}

func overloaded() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded",
		"The service has more to do than it can hold. Send the whole request again.").RetryAfter(time.Second)
}
