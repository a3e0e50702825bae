package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// All text arrives, in pieces of a bounded size.
func TestPacedWriterSendsPieces(t *testing.T) {
	counted := &pieces{ResponseRecorder: httptest.NewRecorder()}
	out, want := NewPacedWriter(counted), bytes.Repeat([]byte("0123456789"), 20_000)
	for part := want; len(part) > 0; part = part[min(777, len(part)):] {
		if _, err := out.Write(part[:min(777, len(part))]); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Must(t, out.Flush())
	if !bytes.Equal(counted.Body.Bytes(), want) {
		t.Errorf("%d bytes arrived, %d were written", counted.Body.Len(), len(want))
	}
	if counted.largest != pieceSize || counted.writes != len(want)/pieceSize+1 {
		t.Errorf("%d writes, the largest of %d bytes", counted.writes, counted.largest)
	}
}

// pieces counts writes.
type pieces struct {
	*httptest.ResponseRecorder
	writes, largest int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.writes, p.largest = p.writes+1, max(p.largest, len(text))
	return p.ResponseRecorder.Write(text)
}

// A stalled reader ends an endless answer, over HTTP/1 and HTTP/2; the
// handler gets the reason.
func TestPacedWriterClosesSlowReaders(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			failed := make(chan error, 1)
			server := httptest.NewUnstartedServer(routerOf(t, func(w http.ResponseWriter, _ *http.Request) error {
				out := newPacedWriter(w, 100*time.Millisecond, time.Minute)
				for {
					if _, err := out.Write(make([]byte, 1000)); err != nil {
						failed <- err
						return err
					}
				}
			}))
			if protocol == "h2" { // has its own window
				server.EnableHTTP2 = true
				server.StartTLS()
			} else {
				server.Start()
				server.Client().Transport.(*http.Transport).DialContext = smallWindow
			}
			defer server.Close()
			response, err := server.Client().Get(server.URL)
			testenv.Must(t, err)
			defer response.Body.Close()
			if protocol == "h2" && response.ProtoMajor != 2 {
				t.Fatalf("the protocol is %s", response.Proto)
			}
			if err := <-failed; !errors.Is(err, ErrReaderTooSlow) {
				t.Errorf("the handler got %v", err)
			}
		})
	}
}

// An answer at a good pace ends too if it takes too long in all.
func TestPacedWriterBoundsTheWhole(t *testing.T) {
	out := newPacedWriter(httptest.NewRecorder(), time.Hour, time.Minute)
	if in := time.Until(out.deadline()); in > time.Minute {
		t.Errorf("a piece may take %s, the whole answer a minute", in)
	}
}

// A failure after the answer has begun closes the connection; a reader
// sees that the answer is incomplete.
func TestHandleCutsWhatHasBegun(t *testing.T) {
	server := httptest.NewServer(routerOf(t, func(w http.ResponseWriter, _ *http.Request) error {
		out := NewPacedWriter(w)
		_, _ = io.WriteString(out, "half")
		_ = out.Flush()
		return errors.New("the database has gone")
	}))
	defer server.Close()
	response, err := http.Get(server.URL)
	testenv.Must(t, err)
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil || string(text) != "half" {
		t.Errorf("read %q, %v; want half and an error", text, err)
	}
}

func routerOf(t *testing.T, handle func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	t.Helper()
	router := NewRouter(Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Get("/", Handle(handle))
	return router
}

// smallWindow dials with a small buffer, so that a stalled reader
// is noticed early.
func smallWindow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetReadBuffer(32 << 10)
}

// A stopped answer fails at once, within a piece that nobody reads and
// before the next one.
func TestPacedWriterStops(t *testing.T) {
	failed := make(chan error, 1)
	writers := make(chan *PacedWriter, 1)
	address, trust := start(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := NewPacedWriter(w)
		writers <- out
		for {
			if _, err := out.Write(make([]byte, pieceSize)); err != nil {
				failed <- err
				return
			}
		}
	})})
	conn, err := tls.Dial("tcp", address, trust)
	testenv.Must(t, err)
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n")
	begun := time.Now()
	(<-writers).Stop()
	if err := <-failed; !errors.Is(err, ErrReaderTooSlow) || time.Since(begun) > pieceTimeout/2 {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
}

// A small body that takes too long is an error, and its part is not used.
func TestSmallBodiesAreNotWaitedFor(t *testing.T) {
	failed := make(chan error, 1)
	address, trust := start(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := readBody(w, r, maxSmallBody, 20*time.Millisecond)
		failed <- err
	})})
	conn, err := tls.Dial("tcp", address, trust)
	testenv.Must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, announce+`{"name":`, "/", "Content-Length: 20\r\n")
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half a body ends with %v", err)
	}
}

// A deadlined writer records its connection's deadlines.
type deadlined struct {
	*httptest.ResponseRecorder
	given []time.Time
}

func (d *deadlined) SetReadDeadline(at time.Time) error {
	d.given = append(d.given, at)
	return nil
}

// A small body has ten seconds; they do not limit the next request
// on its connection.
func TestSmallBodiesHaveTenSeconds(t *testing.T) {
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	before := time.Now()
	body, err := ReadBody(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")), 2)
	if string(body) != "{}" || err != nil || len(w.given) != 2 {
		t.Fatalf("read %q, %v, with the deadlines %v", body, err, w.given)
	}
	if left := w.given[0].Sub(before); left < 10*time.Second || left > 11*time.Second || !w.given[1].IsZero() {
		t.Errorf("the deadline is after %s, then %v", left, w.given[1])
	}
}

// A body that is too large is refused with that reason.
func TestSmallBodiesAreSmall(t *testing.T) {
	var tooLarge *http.MaxBytesError
	_, err := ReadBody(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{} ")), 2)
	if !errors.As(err, &tooLarge) || tooLarge.Limit != 2 {
		t.Errorf("three bytes of two end with %v", err)
	}
}
