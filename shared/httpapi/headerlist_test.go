package httpapi

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/weirlog/weir/shared/httpapi/frames"
)

// block encodes a header list, with fields of these sizes after what a
// request needs.
func block(t *testing.T, fields ...hpack.HeaderField) []byte {
	t.Helper()
	var encoded bytes.Buffer
	encoder := hpack.NewEncoder(&encoded)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "weir"},
	}, fields...) {
		if err := encoder.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	return encoded.Bytes()
}

// inFrames sends a block in frames of at most size bytes, the first with
// padding and a priority.
func inFrames(block []byte, size int) (sent []byte) {
	n := min(size, len(block))
	first := slices.Concat([]byte{3, 0, 0, 0, 0, 16}, block[:n], make([]byte, 3))
	kind, flags := frames.Headers, byte(endStream|flagPadded|flagPriority)
	for payload := first; ; payload = block[:n] {
		if block = block[n:]; len(block) == 0 {
			return append(sent, frame(kind, flags|flagEndHeaders, 1, payload)...)
		}
		sent = append(sent, frame(kind, flags, 1, payload)...)
		kind, flags, n = frames.Continuation, 0, min(size, len(block))
	}
}

// many are fields of which each costs 4 KB of the list, and all but the
// first a byte of the block.
func many(n int) []hpack.HeaderField {
	return slices.Repeat([]hpack.HeaderField{{Name: "x", Value: strings.Repeat("a", 4000)}}, n)
}

var headerLists = map[string]struct {
	fields []hpack.HeaderField
	closed bool
}{
	"small":                      {nil, false},
	"of 60 KB":                   {[]hpack.HeaderField{{Name: "x", Value: strings.Repeat("~", 60<<10)}}, false},
	"of 60 KB, in few bytes":     {many(15), false},
	"of 70 KB":                   {[]hpack.HeaderField{{Name: "x", Value: strings.Repeat("~", 70<<10)}}, true},
	"of 70 KB, in small fields":  {slices.Repeat([]hpack.HeaderField{{Name: "x", Value: "y", Sensitive: true}}, 70<<10/34), true},
	"of 200 KB":                  {[]hpack.HeaderField{{Name: "x", Value: strings.Repeat("~", 200<<10)}}, true},
	"of 70 KB, in few bytes":     {many(18), true},
	"of 40 MB, in a few 10,000s": {many(10_000), true},
}

// A header list gets an answer, or its connection is closed with a
// reason; net/http answers none by itself, whatever frames it comes in.
func TestHeaderLists(t *testing.T) {
	for name, list := range headerLists {
		for _, size := range []int{100, 16 << 10, 1 << 20} {
			address, trust := start(t, &Server{Handler: ok})
			client := dialRaw(t, "127.0.0.1", address, trust)
			sent := inFrames(block(t, list.fields...), size)
			go func() { _, _ = client.Write(sent) }()
			status, code := client.answer()
			_ = client.Close()
			switch {
			case list.closed && (status != "" || code != enhanceYourCalm):
				t.Errorf("%s, in frames of %d: status %q, closed with %#x", name, size, status, code)
			case !list.closed && status != map[bool]string{true: "200", false: "400"}[list.fields == nil]:
				t.Errorf("%s, in frames of %d: status %q, closed with %#x", name, size, status, code)
			}
		}
	}
}

// answer reads a status, or the code with which the connection ends.
func (r *raw) answer() (status string, code uint32) {
	decoder := hpack.NewDecoder(tableBytes, func(field hpack.HeaderField) {
		if field.Name == ":status" {
			status = field.Value
		}
	})
	for status == "" {
		header, payload, err := r.frame()
		switch {
		case err != nil:
			return status, code
		case header == frames.Headers:
			_, _ = decoder.Write(payload)
		case header == frames.GoAway:
			code, _ = frames.GoAwayCode(payload)
		}
	}
	return status, code
}

// A list's size is the same however its bytes are cut.
func TestHeaderListInPieces(t *testing.T) {
	text := inFrames(block(t, hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 300)}), 50)
	for size := 1; size < len(text); size++ {
		l := &linkHTTP2{headers: newHeaderList(), preface: len(frames.Preface)}
		for at := 0; at < len(text); at += size {
			if _, err := l.costOf(text[at:min(at+size, len(text))]); err != nil {
				t.Fatal(err)
			}
		}
		want := uint32(4*32 + len(":methodGET:schemehttps:path/:authorityweir") + 32 + 301)
		if l.headers.size != want {
			t.Errorf("in pieces of %d bytes it has %d bytes, want %d", size, l.headers.size, want)
		}
	}
}

// What it costs to measure the list of a connection's later requests.
func BenchmarkHeaderList(b *testing.B) {
	var encoded bytes.Buffer
	encoder, h := hpack.NewEncoder(&encoded), newHeaderList()
	request := func() {
		encoded.Reset()
		for name, value := range map[string]string{
			":method": "POST", ":scheme": "https", ":path": "/v1/logs", ":authority": "localhost:8443", "content-type": "application/json",
			"x-api-key": "weir_" + strings.Repeat("0a", 24), "user-agent": "weir-go/1", "content-length": "305", "accept-encoding": "gzip",
		} {
			_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		h.begin(frames.Header{Type: frames.Headers, Flags: flagEndHeaders, Length: encoded.Len()})
		_ = h.take(encoded.Bytes())
	}
	request()
	request()
	for b.Loop() {
		h.begin(frames.Header{Type: frames.Headers, Flags: flagEndHeaders, Length: encoded.Len()})
		_ = h.take(encoded.Bytes())
	}
}
