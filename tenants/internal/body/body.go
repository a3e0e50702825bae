// Package body takes in what a request carries before anybody looks at who sends it.
package body

import (
	"bytes"
	"io"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
)

// limit is how much is taken in, in bytes: one more than any handler here reads.
const limit = 64<<10 + 1

// Whole passes a request on once its body is here. A client may send a body as slowly as its deadline lets it: who
// has a request open while their credential is revoked would else carry it out minutes later. So whoever may send the
// request is checked behind Whole, too.
func Whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Body
		taken, err := takeSoon(w, sent)
		rest := io.Reader(sent)
		if err != nil {
			rest = failing{err}
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(taken), rest), sent}
		next.ServeHTTP(w, r)
	})
}

func takeSoon(w http.ResponseWriter, sent io.Reader) ([]byte, error) {
	defer httpapi.ReadSoon(w)()
	return io.ReadAll(io.LimitReader(sent, limit))
}

// failing is the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
