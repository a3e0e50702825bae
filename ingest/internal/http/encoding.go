package http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

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
