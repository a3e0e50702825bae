package http

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// wireSlack is how much a compressed body may exceed the limit:
// incompressible data grows.
const wireSlack = 1 << 20

// trusted is the most that is lent for an announced length; the rest is
// lent when bytes come.
const trusted = 64 << 10

// A Body is the body of a request, whole and decompressed, in lent memory.
type Body struct {
	buffer *Buffer // nil: no memory is lent
	lease  *fairshare.Lease
	bodies *Bodies
	holder string
	digest admission.Digest
	padded bool // it ended as mostly padding

	Received int64 // bytes that came: as they were sent, or after decompression if that is more
}

// Bytes returns the body. It is valid until Close.
func (b *Body) Bytes() []byte { return b.buffer.Bytes }

// Digest identifies what was sent under an idempotency key, if that was asked for.
func (b *Body) Digest() admission.Digest { return b.digest }

// Waste returns the bytes that count as wasted if nothing is accepted.
func (b *Body) Waste() int64 {
	if b.padded {
		return perPadding * b.Received
	}
	return b.Received
}

// Close returns the memory.
func (b *Body) Close() {
	if b.buffer != nil {
		b.bodies.buffers.giveBack(b.buffer)
		b.buffer = nil
	}
	if b.lease != nil {
		b.lease.Release()
		b.lease = nil
	}
}

// The cost of entries besides their text to those who read, store and
// group them, in bytes of text: many small ones are more work than a few large.
const (
	perEntry = 256
	perError = 2 << 10
)

// Holds charges the holder of an ordinary body for its entries, besides its size.
func (b *Body) Holds(batch *ingest.Batch) {
	if b.buffer.large == nil {
		b.bodies.throttle.Received(b.holder, int64(batch.Entries)*perEntry+int64(batch.Errors())*perError)
	}
}

// A Format is how a body is to be read.
type Format struct {
	encoding  encoding
	digested  bool
	translate func(body []byte, to io.Writer) error // to what the parser reads; nil: the body is that
	working   func(body []byte) int64               // memory of translate beside both; nil: none
}

// A reading is a body being read.
type reading struct {
	*Body
	format    Format
	how       encoding // of what is read next
	announced int64    // the announced length, -1: none
	wire      *wire
	overhead  int64 // what its decompression takes, beside the buffer
	share     share
}

// Why reading a body ends early.
var (
	errBodyTooLarge = errors.New("the body is larger than the limit")
	errTooSlow      = errors.New("the body comes too slowly")
	errPadded       = errors.New("most of the body is not content")
	errNeverFits    = errors.New("the body takes more memory to be translated than there is")
)

// Read reads the body of r for a holder. The body must be closed. After
// an error no memory is lent, and the body only has its length.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, format Format, holder string) (*Body, error) {
	body, how := &Body{bodies: b, holder: holder}, format.encoding
	if r.ContentLength > int64(b.max) && (how == identityEncoding || r.ContentLength > int64(b.max+wireSlack)) {
		return body, b.tooLarge()
	}
	b.throttle.Note(holder)
	reading := &reading{Body: body, format: format, how: how, announced: r.ContentLength, overhead: overheadOf(how), wire: newWire(w, r, b, body, how)}
	reading.share = share{bodies: b, holder: holder, wire: reading.wire, ctx: r.Context()}
	err := reading.read()
	body.Received = max(int64(reading.wire.got), int64(reading.wire.inflated))
	body.padded = errors.Is(err, errPadded)
	if body.buffer != nil && body.buffer.large == nil {
		b.throttle.Received(holder, reading.wire.charge())
	}
	if err == nil {
		err = reading.convert()
	}
	if body.lease != nil {
		err = errors.Join(err, body.lease.Pin())
	}
	reading.wire.finish()
	if err != nil {
		b.count(err)
		body.Close()
		return body, b.problem(err, how)
	}
	if body.buffer != nil && reading.overhead > 0 {
		body.lease.Shrink(body.buffer.size())
	}
	return body, nil
}

func (r *reading) read() error {
	if err := r.begin(r.expected()); err != nil {
		return err
	}
	if wait, err := r.bodies.throttle.Due(r.holder); err != nil {
		return errors.Join(overShare(wait), err, errNoFault)
	}
	if r.how == zstdEncoding {
		return r.readZstd()
	}
	reader, free, err := r.bodies.decompressors.open(r.how, r.wire)
	if err != nil {
		return err
	}
	defer free()
	return r.fill(reader, r.bodies.max)
}

// expected returns the body's size to assume before any of it has come.
func (r *reading) expected() int {
	size := max(r.announced, 0)
	if r.how != identityEncoding {
		size *= 4
	}
	return int(min(size, trusted))
}

// begin lends the first memory. The body is not read before.
func (r *reading) begin(size int) (err error) {
	kind := kindFor(size)
	if r.lease, err = r.share.acquire(r.bodies.small, int64(bufferSizes[kind])+r.overhead); err != nil {
		return err
	}
	r.buffer = r.bodies.buffers.lend(kind)
	return nil
}

// fill reads until the source ends. More than limit bytes are errBodyTooLarge.
func (r *reading) fill(source io.Reader, limit int) error {
	for {
		if len(r.buffer.room()) == 0 {
			if err := r.share.await(); err != nil {
				return err
			}
			if err := r.grow(); err != nil {
				return err
			}
		}
		if r.buffer.large != nil {
			runtime.Gosched() // to inflate a large body must not keep small requests from the processor
		}
		n, err := source.Read(r.buffer.room())
		r.note(n)
		switch {
		case len(r.buffer.Bytes) > limit:
			return errBodyTooLarge
		case errors.Is(err, io.EOF):
			return r.share.await()
		case err != nil:
			return err
		}
	}
}

// note adds n received bytes to the buffer.
func (r *reading) note(n int) {
	end := len(r.buffer.Bytes)
	r.buffer.Bytes = r.buffer.Bytes[:end+n]
	useful := usefulIn(r.buffer.Bytes[end:])
	r.wire.inflated += n
	r.wire.pace.received(r.wire.clock(), useful)
	r.lease.Progress(useful)
}

// grow makes room in a full buffer. Once more than trusted was received,
// the announced length is believed.
func (r *reading) grow() error {
	next := r.buffer.kind + 1
	if r.how == identityEncoding {
		next = max(next, kindFor(int(r.announced)))
	}
	switch {
	case r.buffer.large != nil:
		return r.growLarge()
	case next == len(bufferSizes), r.how == identityEncoding && r.announced > smallBody:
		return r.enlarge(0)
	}
	return r.growSmall(next)
}

// begunBody is how much of a body may have come and be sent again all the same.
const begunBody = 8 << 20

func (r *reading) growSmall(kind int) error {
	if err := r.share.grow(r.lease, int64(bufferSizes[kind])); err != nil {
		return err
	}
	larger := r.bodies.buffers.lend(kind)
	larger.Bytes = append(larger.Bytes, r.buffer.Bytes...)
	r.replace(larger)
	r.lease.Shrink(larger.size() + r.overhead)
	return nil
}

func (r *reading) growLarge() error {
	if r.buffer.large.usable < begunBody && r.share.full(r.lease) {
		return admission.ErrOverShare // it has begun together with others, before their holder was over its share
	}
	if err := r.share.take(r.buffer.growth()); err != nil {
		return err
	}
	if err := r.share.grow(r.lease, r.buffer.growth()); err != nil {
		return err
	}
	if err := r.buffer.grow(); err != nil {
		return fmt.Errorf("cannot grow a body (%w): %w", err, fairshare.ErrFull)
	}
	return nil
}

// enlarge makes the body a large one, whose decompression takes more
// memory, and returns its memory of small bodies.
func (r *reading) enlarge(more int64) error {
	if r.share.full(nil) {
		return admission.ErrOverShare
	}
	r.overhead += more
	lease, err := r.share.acquire(r.bodies.large, firstStep+r.overhead)
	if err != nil {
		return err
	}
	small := r.lease
	r.lease = lease
	err = errors.Join(r.share.take(firstStep), small.Pin()) // it may have been ended meanwhile
	if err == nil {
		err = r.moveToLarge()
	}
	small.Release()
	return err
}

func (r *reading) moveToLarge() error {
	larger, err := newLarge(r.bodies.max)
	if err != nil {
		return fmt.Errorf("cannot make room for a large body (%w): %w", err, fairshare.ErrFull)
	}
	larger.Bytes = append(larger.Bytes, r.buffer.Bytes...)
	r.replace(larger)
	return nil
}

// convert makes of what was sent what the parser reads.
func (r *reading) convert() error {
	if r.format.digested {
		r.digest = sha256.Sum256(r.Bytes())
	}
	if r.format.translate == nil {
		return nil
	}
	source := r.buffer
	defer r.bodies.buffers.giveBack(source)
	r.how, r.announced, r.overhead, r.buffer = identityEncoding, -1, source.size(), nil
	if err := r.beginTranslation(source); err != nil {
		return err
	}
	return r.format.translate(source.Bytes, r)
}

// beginTranslation lends memory as large as the source, which is kept until
// the translation ends.
func (r *reading) beginTranslation(source *Buffer) (err error) {
	working := int64(0)
	if r.format.working != nil {
		working = r.format.working(source.Bytes)
	}
	most := r.bodies.most[0]
	if source.large != nil {
		most = r.bodies.most[1]
	}
	if 2*int64(len(source.Bytes))+working > most { // to wait for it would be for nothing, and so to send it again
		return errNeverFits
	}
	if err := r.share.grow(r.lease, min(source.size(), firstStep)+working); err != nil {
		return err
	}
	r.overhead += working
	if source.large == nil {
		r.buffer = r.bodies.buffers.lend(source.kind)
		return nil
	}
	if r.buffer, err = newLarge(r.bodies.max); err != nil {
		return fmt.Errorf("cannot make room for a large body (%w): %w", err, fairshare.ErrFull)
	}
	return nil
}

// Write adds to the translation.
func (r *reading) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		room := r.buffer.room()
		if len(room) == 0 {
			if err := r.grow(); err != nil {
				return 0, err
			}
			continue
		}
		n := copy(room, rest)
		r.buffer.Bytes, rest = r.buffer.Bytes[:len(r.buffer.Bytes)+n], rest[n:]
	}
	if len(r.buffer.Bytes) > r.bodies.max {
		return 0, errBodyTooLarge
	}
	return len(p), nil
}

func (r *reading) replace(larger *Buffer) {
	r.bodies.buffers.giveBack(r.buffer)
	r.buffer = larger
}

// A share is what the limits of a holder leave to one of its bodies. To
// wait for it does not count against the body.
type share struct {
	bodies *Bodies
	holder string
	wire   *wire
	waited bool // for the bodies before it

	ctx context.Context //nolint:containedctx // of the request, with which the reading ends
}

// await waits, once, for the bodies of the holder before it: as one under
// way with little memory, of which the first piece has come. Only of a body
// that is whole does net/http notice over HTTP/1.1 that its client has left.
func (s *share) await() error {
	if s.waited {
		return nil
	}
	s.waited = true
	wait, err := s.bodies.throttle.Await(s.ctx, s.holder)
	s.wire.pace.pause(wait)
	if errors.Is(err, admission.ErrOverShare) {
		return errors.Join(overShare(wait), err, errNoFault)
	}
	return leftWaiting(err)
}

// leftWaiting marks that a client left while its body waited here: its
// bytes are no waste.
func leftWaiting(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(httpapi.NewProblem(http.StatusBadRequest, "incomplete_body", "The connection ended while the body waited for its turn."), err, errNoFault)
}

// full reports whether it has no room for a large
// body. lease is nil if it is to be opened.
func (s *share) full(lease *fairshare.Lease) bool {
	return s.bodies.throttle.Full(s.holder, s.bodies.large.Older(s.holder, lease))
}

// take waits until it has room for more of a large body.
func (s *share) take(bytes int64) error {
	wait, err := s.bodies.throttle.Take(s.ctx, s.holder, bytes)
	s.wire.pace.pause(wait)
	return leftWaiting(err)
}

func (s *share) grow(lease *fairshare.Lease, by int64) error {
	return s.wait(func() error { return lease.Grow(s.ctx, by) })
}

// acquire lends memory that may be taken back until the body is whole.
func (s *share) acquire(memory *fairshare.Limiter, bytes int64) (lease *fairshare.Lease, err error) {
	err = s.wait(func() error {
		lease, err = memory.Acquire(s.ctx, s.holder, bytes)
		return err
	})
	if err == nil {
		lease.AllowEviction(s.wire.stop)
	}
	return lease, err
}

// wait runs f.
func (s *share) wait(f func() error) error {
	begun := s.bodies.clock()
	err := f()
	s.wire.pace.pause(s.bodies.clock().Sub(begun))
	if s.ctx.Err() != nil && errors.Is(err, s.ctx.Err()) {
		return leftWaiting(err)
	}
	return err
}
