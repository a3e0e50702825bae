package body

import (
	"bytes"
	"io"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
)

// limit is the largest body of any handler here, in bytes.
const limit = 64 << 10

// Whole passes a request on once its body is read. A slow
// body could outlast the revocation of its sender's
// credential, which is therefore checked after Whole, too.
func Whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken, err := httpapi.ReadBody(w, r, limit)
		whole := io.Reader(bytes.NewReader(taken))
		if err != nil {
			whole = io.MultiReader(whole, failing{err})
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{whole, r.Body}
		next.ServeHTTP(w, r)
	})
}

// failing is the rest of an unreadable body.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
