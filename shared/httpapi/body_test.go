package httpapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A small body that takes too long is an error, and its part is not used.
func TestSmallBodiesAreNotWaitedFor(t *testing.T) {
	failed := make(chan error, 1)
	address, trust := start(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := readBody(w, r, maxSmallBody, 20*time.Millisecond)
		failed <- err
	})})
	conn, err := tls.Dial("tcp", address, trust)
	if err != nil {
		t.Fatal(err)
	}
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
