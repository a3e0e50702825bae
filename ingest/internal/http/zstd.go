package http

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the largest window of a frame: what RFC 8878
// asks every decoder to support.
const zstdWindow = 8 << 20

// maxPacked is how much of a zstd body is buffered before
// decompression. Most bodies are smaller: they are decompressed at once
// into their buffer and need no window, whatever their frames declare.
const maxPacked = 256 << 10

// errWindow is the error of a zstd body that declares too large a window.
var errWindow = errors.New("the window is too large")

// readZstd reads a body whose first small buffer is open.
func (r *reading) readZstd() error {
	err := r.fill(r.wire, maxPacked)
	r.wire.inflated = 0 // what came so far is compressed
	switch {
	case err == nil:
		err = r.inflateBuffer()
	case errors.Is(err, errBodyTooLarge) && r.wire.got <= r.wire.max:
		err = r.inflateStream(r.wire)
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return errWindow
	}
	return err
}

// inflateBuffer decompresses what the buffer holds into another small
// buffer, the smallest that is large enough.
func (r *reading) inflateBuffer() error {
	packed := r.buffer
	if len(packed.Bytes) == 0 {
		return io.ErrUnexpectedEOF
	}
	for kind := kindFor(min(4*len(packed.Bytes), trusted)); kind < len(bufferSizes); kind++ {
		if err := r.growLease(int64(bufferSizes[kind])); err != nil {
			return err
		}
		larger := r.bodies.buffers.lend(kind)
		n, err := r.inflateInto(larger, packed.Bytes)
		if err == nil {
			r.replace(larger)
			r.note(n)
			return tooLargeIf(n > r.bodies.max)
		}
		r.bodies.buffers.giveBack(larger)
		if isBroken(err) {
			return err
		}
		r.lease.Shrink(packed.size() + r.overhead)
	}
	if r.bodies.max <= smallBody {
		return errBodyTooLarge
	}
	return r.inflateStream(bytes.NewReader(nil))
}

// isBroken reports whether more room would not help: a decoder without
// room returns other errors.
func isBroken(err error) bool {
	for _, final := range [...]error{
		io.ErrUnexpectedEOF, zstd.ErrMagicMismatch, zstd.ErrWindowSizeExceeded, zstd.ErrWindowSizeTooSmall, zstd.ErrUnknownDictionary,
		zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig, zstd.ErrBlockTooSmall, zstd.ErrCRCMismatch,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

func tooLargeIf(larger bool) error {
	if larger {
		return errBodyTooLarge
	}
	return nil
}

// inflateInto decompresses into an empty buffer, which may be too small.
func (r *reading) inflateInto(buffer *Buffer, packed []byte) (int, error) {
	decoder, err := r.bodies.decompressors.zstdDecoder()
	if err != nil {
		return 0, err
	}
	defer r.bodies.decompressors.zstd.Put(decoder)
	room := buffer.room()
	text, err := decoder.DecodeAll(packed, room[:0:len(room)])
	if err != nil {
		return 0, err
	}
	return copy(room, text), nil // onto itself
}

// inflateStream decompresses the buffer and the rest into a large
// buffer. The decoder, with its whole window, is not reused.
func (r *reading) inflateStream(rest io.Reader) error {
	packed := r.buffer
	defer r.bodies.buffers.giveBack(packed)
	r.buffer = r.bodies.buffers.lend(0)
	if err := r.enlarge(zstdStreamMemory - r.overhead); err != nil {
		return err
	}
	decoder, err := zstd.NewReader(io.MultiReader(bytes.NewReader(packed.Bytes), rest),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return err
	}
	defer decoder.Close()
	return r.fill(decoder, r.bodies.max)
}

// zstdDecoder returns a decoder that decompresses into given memory,
// and never allocates by declared sizes.
func (d *decompressors) zstdDecoder() (*zstd.Decoder, error) {
	if decoder, ok := d.zstd.Get().(*zstd.Decoder); ok {
		return decoder, nil
	}
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow),
		zstd.WithDecodeAllCapLimit(true))
}
