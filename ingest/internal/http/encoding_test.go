package http

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A body is one compressed stream: data after it, or a truncated
// stream, is refused in every encoding.
func TestEncodedBodyIsTheStreamAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		how  string
		open func(io.Writer) (io.WriteCloser, error)
	}{
		{"gzip", "gzip", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }},
		{"zlib", "deflate", func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }},
		{"bare deflate", "deflate", func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 5) }},
		{"zstd", "zstd", func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stream bytes.Buffer
			w, err := c.open(&stream)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(body(20)); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			in := newIntake(t, &memoryLog{}, plenty)
			whole := stream.String()
			for range 2 { // the second time with a reader that was used before
				for _, sent := range []string{whole + "x", whole + strings.Repeat("garbage ", 1000), whole[:len(whole)-1]} {
					got := serve(in, newPost(strings.NewReader(sent), "Content-Encoding", c.how))
					if got.Code != 400 || !strings.Contains(got.Body.String(), `"invalid_encoding"`) {
						t.Errorf("%d bytes for %d: %d %s", len(sent), len(whole), got.Code, got.Body)
					}
				}
				if got := serve(in, newPost(strings.NewReader(whole), "Content-Encoding", c.how)); got.Code != 200 {
					t.Errorf("the stream alone: %d %s", got.Code, got.Body)
				}
			}
		})
	}
}

// An endless repeats a piece forever.
type endless struct {
	head, piece []byte
	came        int
}

func (e *endless) Read(p []byte) (n int, err error) {
	n = copy(p, e.head)
	e.head = e.head[n:]
	for n < len(p) {
		next := copy(p[n:], e.piece[e.came%len(e.piece):])
		n, e.came = n+next, e.came+next
	}
	return n, nil
}

// Empty blocks, frames and members cost work: a body of mostly these
// ends far below its limit, however fast it comes.
func TestPaddedBodiesEnd(t *testing.T) {
	gzipHead := packed(nil)[:10]
	for name, c := range map[string]struct {
		how         string
		head, piece []byte
	}{
		"empty gzip members":     {"gzip", nil, zipped(nil)},
		"empty stored blocks":    {"gzip", gzipHead, []byte{0, 0, 0, 0xff, 0xff}},
		"empty coded blocks":     {"gzip", gzipHead, []byte{0x02, 0x08, 0x20, 0x80, 0x00}},
		"blocks of bare deflate": {"deflate", nil, []byte{0, 0, 0, 0xff, 0xff}},
		"skippable frames":       {"zstd", nil, []byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}},
		"empty frames":           {"zstd", nil, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newIntake(t, &memoryLog{}, plenty)
			in.Bodies = testBodies(189<<20, 128<<20, func() time.Time { return start })
			sent := &endless{head: c.head, piece: c.piece}
			got := serve(in, newPost(sent, "Content-Encoding", c.how))
			if got.Code != 400 || !strings.Contains(got.Body.String(), `"invalid_encoding"`) || sent.came > 1<<20 {
				t.Errorf("%d bytes were read: %d %s", sent.came, got.Code, got.Body)
			}
		})
	}
}
