package changes_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirlog/weir/tenants/internal/changes"
)

// The next handler begins after the body, and
// reads it as it was sent, with its error.
func TestWhole(t *testing.T) {
	for name, c := range map[string]struct {
		body io.Reader
		want string
		err  string
	}{
		"none":     {http.NoBody, "", "<nil>"},
		"slow":     {iotest.OneByteReader(strings.NewReader("name=a")), "name=a", "<nil>"},
		"too long": {strings.NewReader(strings.Repeat("x", 70<<10)), strings.Repeat("x", 64<<10), "http: request body too large"},
		"broken":   {io.MultiReader(strings.NewReader("na"), iotest.ErrReader(errors.New("broken"))), "na", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			handler := changes.Whole(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				if string(got) != c.want || fmt.Sprint(err) != c.err {
					t.Errorf("%d bytes, %v; want %d, %s", len(got), err, len(c.want), c.err)
				}
			}))
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", c.body))
		})
	}
}

// What is checked behind Whole is checked after the last byte.
func TestWholeComesFirst(t *testing.T) {
	arrived := false
	last := iotest.DataErrReader(io.MultiReader(strings.NewReader("name=a"), reader(func([]byte) (int, error) {
		arrived = true
		return 0, io.EOF
	})))
	handler := changes.Whole(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if !arrived {
			t.Error("the check came before the body")
		}
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", last))
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
