package httpapi

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/weirlog/weir/shared/httpapi/frames"
)

// What answers pay for, in the units of frames.Cost. A connection
// begins with firstCredit and keeps at most maxCredit.
const (
	firstCredit  = 512
	maxCredit    = 32_000
	answerCredit = 32 // as much as a request costs that is refused
	usefulCredit = 64

	bytesOfCredit = 64 // of an answer, and of an accepted body
)

// goAwayTimeout is how long a client has to read why it is closed.
const goAwayTimeout = time.Second

// enhanceYourCalm is the error code for excessive load (RFC 9113, 7).
const enhanceYourCalm = 0xb

// A linkHTTP2 is a connection of HTTP/2, over TLS. Its frames cost, and
// its answers pay; what they don't pay for counts for its network.
// net/http serves it as one without TLS, and so reads the bytes of
// frames from here.
type linkHTTP2 struct {
	net.Conn
	secrecy
	credit atomic.Int64
	bodies atomic.Int64 // bytes of DATA frames that no answer has paid for

	in      frames.Scanner // of the reading goroutine
	headers *headerList
	preface int           // bytes of it that were read
	last    atomic.Uint32 // stream

	writing sync.Mutex // guards those below
	out     frames.Scanner
	written int // bytes that have not paid
}

func newLinkHTTP2(conn net.Conn, under secrecy) *linkHTTP2 {
	l := &linkHTTP2{Conn: conn, secrecy: under, headers: newHeaderList()}
	l.credit.Store(firstCredit)
	return l
}

func (l *linkHTTP2) begin() {}
func (l *linkHTTP2) idle()  {}

// end pays for a request that was answered. A request whose client has
// gone, or has reset its stream, was none.
func (l *linkHTTP2) end(r *http.Request, status int) {
	if status == 0 || r.Context().Err() != nil {
		return
	}
	useful := status < http.StatusBadRequest
	l.known.Account.Answered(useful)
	switch {
	case !useful:
		l.earn(answerCredit)
	case r.ContentLength != 0:
		l.earn(usefulCredit + l.bodies.Swap(0)/bytesOfCredit)
	default:
		l.earn(usefulCredit)
	}
}

// earn may exceed maxCredit for a moment; then the next one reduces it.
func (l *linkHTTP2) earn(amount int64) {
	if total := l.credit.Add(amount); total > maxCredit {
		l.credit.Add(maxCredit - total)
	}
}

// Read charges for the frames whose headers it has read.
func (l *linkHTTP2) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	cost, tooLarge := l.costOf(p[:n])
	if tooLarge != nil {
		l.known.Account.Fault()
		l.goAway()
		return 0, tooLarge
	}
	if cost > 0 && l.credit.Add(-cost) < 0 {
		l.credit.Add(cost)
		if flood := l.known.Account.Spend(cost); flood != nil {
			l.goAway()
			return 0, flood
		}
	}
	return n, err
}

// costOf returns what the frames cost whose headers end in p, or why
// their header list ends the connection.
func (l *linkHTTP2) costOf(p []byte) (cost int64, err error) {
	if l.preface < len(frames.Preface) {
		p = l.skipPreface(p)
	}
	if err := l.headers.take(p); err != nil {
		return 0, err
	}
	for header, rest, ok := l.in.Next(p); ok; header, rest, ok = l.in.Next(rest) {
		cost += frames.Cost(header)
		switch header.Type {
		case frames.Data:
			l.bodies.Add(int64(header.Length))
		case frames.Headers:
			l.last.Store(header.Stream)
			fallthrough
		case frames.Continuation:
			l.headers.begin(header)
			if err := l.headers.take(rest); err != nil {
				return 0, err
			}
		}
	}
	return cost, nil
}

// skipPreface notes a client that does not speak HTTP/2, though it said
// so; net/http closes it without an answer.
func (l *linkHTTP2) skipPreface(p []byte) []byte {
	want := frames.Preface[l.preface:]
	n := min(len(want), len(p))
	if string(p[:n]) != want[:n] {
		l.known.Account.Fault()
	}
	l.preface += n
	return p[n:]
}

// Write pays by what it sends, and notes the error by which the server
// ends the connection.
func (l *linkHTTP2) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.written += len(p)
	l.earn(int64(l.written / bytesOfCredit))
	l.written %= bytesOfCredit
	for header, rest, ok := l.out.Next(p); ok; header, rest, ok = l.out.Next(rest) {
		if header.Type == frames.GoAway {
			if code, known := frames.GoAwayCode(rest); known && code != 0 {
				l.known.Account.Fault()
			}
		}
	}
	return l.Conn.Write(p)
}

// goAway tells the client why it is closed, within a moment.
func (l *linkHTTP2) goAway() {
	_ = l.Conn.SetWriteDeadline(time.Now().Add(goAwayTimeout)) //nolint:forbidigo // sockets use the system's time
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.out.Between() {
		l.known.Linger()
		_, _ = l.Conn.Write(frames.AppendGoAway(nil, l.last.Load(), enhanceYourCalm))
	}
}

// asHTTP1Would refuses, as problems, what net/http refuses by itself in
// HTTP/1: an unknown expectation, and too large headers, for which it
// has another limit of its own.
func (s *Server) asHTTP1Would(next http.Handler) http.Handler {
	refuse := func(status int) http.Handler {
		return identify(s.Logger)(Handle(func(http.ResponseWriter, *http.Request) error { return malformed(status, "") }))
	}
	expectation, tooLarge := refuse(http.StatusExpectationFailed), refuse(http.StatusRequestHeaderFieldsTooLarge)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header["Expect"] != nil:
			expectation.ServeHTTP(w, r)
		case sizeOf(r) > maxHeaderBytes:
			tooLarge.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// sizeOf returns about how many bytes the head of r has in HTTP/1.
func sizeOf(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	return size
}

// maxHeaderList is how large a header list of HTTP/2 may be, as RFC 9113
// counts it: those between maxHeaderBytes and this are refused by a
// handler, larger ones end their connection.
const maxHeaderList = 4 * maxHeaderBytes

// errHeaderList means that a client sends header lists that no client needs.
var errHeaderList = errors.New("a header list is too large")

// A headerList measures the header lists of a connection as they pass:
// net/http answers a too large one by itself, with 431 and in HTML, and
// a few bytes can stand for many. It keeps the table that the client's
// bytes refer to, 4 KB, and at most one field.
type headerList struct {
	decoder *hpack.Decoder
	size    uint32 // of the current list, so far

	left     int // bytes of the current frame's payload that have not passed
	priority int // of which these come before the list
	padding  int // and these after it
	padded   bool
	last     bool // frame of its list
}

const (
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	priorityBytes = 5
	tableBytes    = 4096 // which a client may use before it knows better
)

func newHeaderList() *headerList {
	h := &headerList{}
	h.decoder = hpack.NewDecoder(tableBytes, func(field hpack.HeaderField) { h.size += field.Size() })
	h.decoder.SetMaxStringLength(maxHeaderList)
	return h
}

// begin takes the header of a frame that has a part of a list.
func (h *headerList) begin(header frames.Header) {
	h.left, h.priority, h.padding = header.Length, 0, 0
	h.last = header.Flags&flagEndHeaders != 0
	h.padded = false
	if header.Type == frames.Headers {
		h.size = 0
		h.padded = header.Flags&flagPadded != 0
		if header.Flags&flagPriority != 0 {
			h.priority = priorityBytes
		}
	}
}

// take reads what p has of the frame's payload. What it can't read,
// net/http can't either, and ends the connection.
func (h *headerList) take(p []byte) error {
	p = p[:min(h.left, len(p))]
	h.left -= len(p)
	if h.padded && len(p) > 0 {
		h.padding, h.padded, p = int(p[0]), false, p[1:]
	}
	skipped := min(h.priority, len(p))
	h.priority, p = h.priority-skipped, p[skipped:]
	_, err := h.decoder.Write(p[:max(0, len(p)-max(0, h.padding-h.left))])
	if h.size > maxHeaderList || errors.Is(err, hpack.ErrStringLength) {
		return errHeaderList
	}
	if h.last && h.left == 0 {
		_ = h.decoder.Close()
	}
	return nil
}
