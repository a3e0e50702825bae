package http

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A body is one compressed stream: data behind it is refused in every
// encoding, and so is a stream that is cut off.
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
