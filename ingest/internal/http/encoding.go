package http

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/shared/httpapi"
)

// An encoding is how a body was compressed.
type encoding string

// The supported encodings.
const (
	identityEncoding encoding = "identity"
	gzipEncoding     encoding = "gzip"
	deflateEncoding  encoding = "deflate"
	zstdEncoding     encoding = "zstd"
)

// encodingOf parses Content-Encoding: one supported encoding or none.
func encodingOf(header http.Header) (encoding, error) {
	values := header.Values("Content-Encoding")
	if len(values) == 0 {
		return identityEncoding, nil
	}
	switch name := strings.ToLower(strings.TrimSpace(strings.Join(values, ","))); name {
	case "", "identity":
		return identityEncoding, nil
	case "gzip", "x-gzip":
		return gzipEncoding, nil
	case "deflate":
		return deflateEncoding, nil
	case "zstd":
		return zstdEncoding, nil
	default:
		return "", httpapi.NewProblem(http.StatusBadRequest, "unsupported_encoding",
			fmt.Sprintf("The content encoding %.64q is not supported. Send one of gzip, zstd, deflate, or none, and apply it once.", name))
	}
}

// Memory of decompression besides the text: tables and window of a
// deflate stream; blocks of a zstd stream, and its largest window
// unless it is decompressed at once.
const (
	deflateMemory    = 64 << 10
	zstdMemory       = 384 << 10
	zstdStreamMemory = zstdWindow + 1<<20 + maxPacked
)

// overheadOf returns the memory to decompress a small body, besides its text.
func overheadOf(how encoding) int64 {
	switch how {
	case identityEncoding:
		return 0
	case zstdEncoding:
		return zstdMemory
	}
	return deflateMemory
}

// decompressors keeps readers for reuse: they hold large tables.
// Those of zstd are in zstd.go.
type decompressors struct {
	gzip, zlib, flate, zstd sync.Pool
}

// open returns a reader of what source holds decompressed; close releases it.
func (d *decompressors) open(how encoding, source io.Reader) (reader io.Reader, close func(), err error) {
	switch how {
	case gzipEncoding:
		return d.openGzip(source)
	case deflateEncoding:
		return d.openDeflate(source)
	}
	return source, func() {}, nil
}

func (d *decompressors) openGzip(source io.Reader) (io.Reader, func(), error) {
	reader, ok := d.gzip.Get().(*gzip.Reader)
	if !ok {
		reader = new(gzip.Reader)
	}
	if err := reader.Reset(source); err != nil {
		return nil, nil, err
	}
	return reader, func() { d.gzip.Put(reader) }, nil
}

// errTrailing is the error for data after the compressed stream.
var errTrailing = errors.New("there is data behind the compressed stream")

// alone ensures that source ends with its stream: unlike those of gzip
// and zstd, readers of deflate ignore what follows.
type alone struct {
	stream io.Reader
	source *bufio.Reader
}

func (a alone) Read(p []byte) (int, error) {
	n, err := a.stream.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if _, err = a.source.ReadByte(); err == nil {
		err = errTrailing
	}
	return n, err
}

// openDeflate reads HTTP's deflate: the zlib format, or the bare
// stream, as many clients send.
func (d *decompressors) openDeflate(source io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReader(source)
	stream, free, err := d.openStream(buffered)
	if err != nil {
		return nil, nil, err
	}
	return alone{stream: stream, source: buffered}, free, nil
}

func (d *decompressors) openStream(buffered *bufio.Reader) (io.Reader, func(), error) {
	head, err := buffered.Peek(2)
	if err != nil {
		return nil, nil, err
	}
	if isZlib := head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0; !isZlib {
		return reuse(&d.flate, buffered, flate.NewReader)
	}
	reader, ok := d.zlib.Get().(io.ReadCloser)
	if !ok {
		reader, err = zlib.NewReader(buffered)
	} else {
		err = reader.(zlib.Resetter).Reset(buffered, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	return reader, func() { d.zlib.Put(reader) }, nil
}

func reuse(pool *sync.Pool, source io.Reader, make func(io.Reader) io.ReadCloser) (io.Reader, func(), error) {
	reader, ok := pool.Get().(io.ReadCloser)
	if !ok {
		reader = make(source)
	} else if err := reader.(flate.Resetter).Reset(source, nil); err != nil {
		return nil, nil, err
	}
	return reader, func() { pool.Put(reader) }, nil
}

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
		if err := r.share.grow(r.lease, int64(bufferSizes[kind])); err != nil {
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
