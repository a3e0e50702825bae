package openapitest

import (
	"io"
	"sync"
)

// maxKept is how much of a body is kept for the check. The
// longest page of a list is shorter.
const maxKept = 16 << 20

// A body is what has been read or written of one.
type body struct {
	text  []byte
	ended bool // nothing comes after text
	cut   bool // more came than may be kept
}

// complete reports whether text is all of the body.
func (b *body) complete() bool { return b.ended && !b.cut }

func (b *body) add(piece []byte) {
	room := maxKept - len(b.text)
	b.cut = b.cut || len(piece) > room
	b.text = append(b.text, piece[:min(len(piece), room)]...)
}

// A reader keeps what is read of a body, and calls done once
// when it has ended or is closed.
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
