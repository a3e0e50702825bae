package openapitest

import (
	"io"
	"sync"
)

// maxKept is how many bytes of a body are kept for the check. The
// longest page of a list is shorter.
const maxKept = 16 << 20

// A body is the part of a body that was read or written.
type body struct {
	text  []byte
	ended bool // text is its end
	cut   bool // more came than is kept
}

// complete reports whether text is the whole body.
func (b *body) complete() bool { return b.ended && !b.cut }

func (b *body) add(piece []byte) {
	room := maxKept - len(b.text)
	b.cut = b.cut || len(piece) > room
	b.text = append(b.text, piece[:min(len(piece), room)]...)
}

// A reader keeps what is read of a body, and calls done once, at its
// end or when it is closed.
type reader struct {
	io.ReadCloser
	body *body
	done func()
}

func newReader(from io.ReadCloser, into *body, done func()) *reader {
	return &reader{from, into, sync.OnceFunc(done)}
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.body.add(p[:n])
	if err == io.EOF {
		r.body.ended = true
		r.done()
	}
	return n, err
}

func (r *reader) Close() error {
	r.done()
	return r.ReadCloser.Close()
}
