package httpapi

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2/hpack"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi/connections"
	"github.com/weirlog/weir/shared/httpapi/frames"
	"github.com/weirlog/weir/shared/testenv"
)

// Header blocks without a table: GET and POST of https://weir/ (RFC 7541).
var (
	getBlock  = []byte("\x82\x87\x84\x41\x04weir")
	postBlock = []byte("\x83\x87\x84\x41\x04weir")
)

const endStream = 0x1

func frame(kind frames.Type, flags byte, stream uint32, payload []byte) []byte {
	return frames.Append(nil, frames.Header{Type: kind, Flags: flags, Stream: stream}, payload)
}

// A raw connection speaks HTTP/2 by hand.
type raw struct {
	*tls.Conn
	t *testing.T
}

// dialRaw connects from a local address and sends the preface.
func dialRaw(t *testing.T, local, address string, trust *tls.Config) *raw {
	t.Helper()
	trust = trust.Clone()
	trust.NextProtos = []string{protoHTTP2}
	conn := tls.Client(from(t, local, address), trust)
	if _, err := conn.Write(append([]byte(frames.Preface), frame(frames.Settings, 0, 0, nil)...)); err != nil {
		t.Fatal(err)
	}
	return &raw{conn, t}
}

// goAway reads until the connection ends, and returns the code of the
// last GOAWAY frame.
func (r *raw) goAway() (code uint32) {
	for {
		kind, payload, err := r.frame()
		if err != nil {
			return code
		}
		if kind == frames.GoAway {
			code, _ = frames.GoAwayCode(payload)
		}
	}
}

// frame reads one.
func (r *raw) frame() (kind frames.Type, payload []byte, err error) {
	header := make([]byte, 9)
	if _, err := io.ReadFull(r, header); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
	_, err = io.ReadFull(r, payload)
	return frames.Type(header[3]), payload, err
}

// flood repeats what frames returns until the connection ends.
func (r *raw) flood(frames func(i uint32) []byte) {
	for i := uint32(0); ; i++ {
		if _, err := r.Write(frames(i)); err != nil {
			return
		}
	}
}

// floods are ways to keep a server busy that ask for nothing.
var floods = map[string]struct {
	first []byte // once
	then  func(i uint32) []byte
}{
	"settings":      {nil, func(uint32) []byte { return frame(frames.Settings, 0, 0, nil) }},
	"ping":          {nil, func(uint32) []byte { return frame(frames.Ping, 0, 0, make([]byte, 8)) }},
	"priority":      {nil, func(uint32) []byte { return frame(frames.Priority, 0, 1, []byte{0, 0, 0, 3, 0}) }},
	"unknown types": {nil, func(uint32) []byte { return frame(0xbe, 0, 0, nil) }},
	"window updates": {frame(frames.Headers, flagEndHeaders, 1, postBlock), func(i uint32) []byte {
		return frame(frames.WindowUpdate, 0, 0, []byte{0, 0, 0, 1})
	}},
	"empty data": {frame(frames.Headers, flagEndHeaders, 1, postBlock), func(uint32) []byte { return frame(frames.Data, 0, 1, nil) }},
	"padded data": {frame(frames.Headers, flagEndHeaders, 1, postBlock), func(uint32) []byte {
		return frame(frames.Data, 0x8, 1, []byte{2, 0, 0})
	}},
	"resets": {nil, func(i uint32) []byte {
		stream := 2*i + 1
		return append(frame(frames.Headers, flagEndHeaders|endStream, stream, getBlock), frame(frames.ResetStream, 0, stream, make([]byte, 4))...)
	}},
	"continuations": {frame(frames.Headers, endStream, 1, getBlock), func(uint32) []byte { return frame(frames.Continuation, 0, 1, nil) }},
	"header blocks": {nil, func(i uint32) []byte {
		field := append([]byte("\x00\x01x\x7f\xc1\x3d"), bytes.Repeat([]byte("a"), 8000)...) // x: aaa…
		stream := 2*i + 1
		return append(frame(frames.Headers, flagEndHeaders|endStream, stream, slices.Concat(getBlock, field)), frame(frames.ResetStream, 0, stream, make([]byte, 4))...)
	}},
}

var smallRates = connections.Rates{
	Work: fairshare.Rate{Burst: 1250, PerSecond: 125}, Arrivals: fairshare.Rate{Burst: 10, PerSecond: 1}, Patience: 500 * time.Millisecond,
}

// posting returns a client that posts 48 KB over HTTP/2 from a local
// address, already connected.
func posting(t *testing.T, local, address string, trust *tls.Config) (post func()) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true, DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	client, body := &http.Client{Transport: transport}, bytes.Repeat([]byte("x"), 48<<10)
	post = func() {
		response, err := client.Post("https://"+address, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); response.StatusCode != 200 || response.ProtoMajor != 2 || err != nil {
			t.Errorf("a good client is answered %s %d, %v", response.Proto, response.StatusCode, err)
		}
	}
	post()
	return post
}

// A flood has cost its network's rate when it is closed, and is told
// why; good clients are answered, also in its network.
func TestFloodsAreClosed(t *testing.T) {
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			var requests atomic.Int64
			server := &Server{rates: smallRates, Metrics: registry, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host == "weir" {
					requests.Add(1)
					<-r.Context().Done()
					return
				}
				_, _ = io.Copy(w, r.Body)
			})}
			address, trust := start(t, server)
			near, far := posting(t, "127.0.0.2", address, trust), posting(t, "127.0.0.1", address, trust)
			begun, attacker := time.Now(), dialRaw(t, "127.0.0.2", address, trust)
			var flooding sync.WaitGroup
			flooding.Go(func() {
				_, _ = attacker.Write(flood.first)
				attacker.flood(flood.then)
			})
			ended := make(chan uint32, 1)
			go func() { ended <- attacker.goAway() }()
			for range 50 {
				near()
				far()
			}
			if code := <-ended; code != enhanceYourCalm {
				t.Errorf("it ends with the code %#x, want ENHANCE_YOUR_CALM", code)
			}
			flooding.Wait()
			if n := count(t, registry, closings, "flood"); n != 1 {
				t.Errorf("%d connections were closed for a flood", n)
			}
			if count(t, registry, delays, "flood") == 0 {
				t.Error("it was never delayed")
			}
			if most := (firstCredit + smallRates.Work.Burst + 250 + smallRates.Work.PerSecond*int64(1+time.Since(begun).Seconds())) / 24; requests.Load() > most {
				t.Errorf("%d requests were begun, at most %d", requests.Load(), most)
			}
		})
	}
}

// A client at full speed, of many frames, never waits, even with the
// smallest rates: its answers pay.
func TestGoodClientsNeverWait(t *testing.T) {
	registry := prometheus.NewRegistry()
	address, trust := start(t, &Server{rates: smallRates, Metrics: registry, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})})
	post := posting(t, "127.0.0.2", address, trust)
	var posts sync.WaitGroup
	for range 8 {
		posts.Go(func() {
			for range 250 {
				post()
			}
		})
	}
	posts.Wait()
	if n := count(t, registry, delays, "flood"); n != 0 {
		t.Errorf("it waited %d times", n)
	}
}

// Connections that end with a protocol error make their network wait
// for the next ones; another network does not notice.
func TestReconnectsAfterErrorsAreLimited(t *testing.T) {
	for name, fault := range map[string][]byte{
		"data on no stream": frame(frames.Data, 0, 0, nil),
		"a frame too long":  frame(frames.Data, 0, 1, make([]byte, 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			address, trust := start(t, &Server{Handler: ok, rates: smallRates, Metrics: registry})
			attempts := 0
			for ; count(t, registry, delays, "arrivals") == 0 && attempts < 5; attempts++ {
				attacker := dialRaw(t, "127.0.0.2", address, trust)
				go func() { _, _ = attacker.Write(fault) }()
				if code := attacker.goAway(); code == 0 || code == enhanceYourCalm {
					t.Fatalf("it ends with the code %d", code)
				}
			}
			if n := count(t, registry, closings, "protocol_error"); n != attempts || attempts > 2 {
				t.Errorf("%d of %d connections were closed for an error before one waited; at most 2 may be", n, attempts)
			}
			posting(t, "127.0.0.1", address, trust)
		})
	}
}

// A client that chose HTTP/2 and speaks something else is closed, and
// counts as one with a protocol error.
func TestWithoutPreface(t *testing.T) {
	registry := prometheus.NewRegistry()
	address, trust := start(t, &Server{Handler: ok, Metrics: registry})
	trust.NextProtos = []string{protoHTTP2}
	conn := tls.Client(from(t, "127.0.0.1", address), trust)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); len(text) > 0 || err != nil && !errors.Is(err, io.EOF) && !isReset(err) {
		t.Errorf("it reads %q, %v", text, err)
	}
	if n := count(t, registry, closings, "protocol_error"); n != 1 {
		t.Errorf("%d connections were closed for an error", n)
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// block encodes a header list, with fields of these sizes after what a
// request needs.
func block(t *testing.T, fields ...hpack.HeaderField) []byte {
	t.Helper()
	var encoded bytes.Buffer
	encoder := hpack.NewEncoder(&encoded)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "weir"},
	}, fields...) {
		testenv.Must(t, encoder.WriteField(field))
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
