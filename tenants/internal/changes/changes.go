package changes

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// OperatorFactor is how many times an organization's
// limit an operator has, who manages all of them.
const OperatorFactor = 50

// maxTracked is how many organizations are tracked.
const maxTracked = 100_000

// A Limiter counts changes by organization,
// per process. Safe for concurrent use.
type Limiter struct {
	clock     func() time.Time
	perMinute int
	table     *fairshare.Table[key]
}

// A key is who shares a limit: an organization's tokens, its members,
// or an operator. Tokens must not keep members from revoking one.
type key struct {
	organization, kind, operator string
}

// NewLimiter allows each organization perMinute changes, and as many at once.
func NewLimiter(clock func() time.Time, perMinute int) *Limiter {
	return &Limiter{clock, perMinute, fairshare.NewTable[key](maxTracked)}
}

// take counts a change of a principal.
func (l *Limiter) take(principal identity.Principal) fairshare.Result {
	of := key{organization: principal.Organization, kind: principal.Kind}
	ask := fairshare.KeyLimit[key]{Scope: fairshare.ScopeOrganization, Key: of, PerMinute: l.perMinute}
	if principal.Organization == "" { // bound to the installation
		ask.Key, ask.PerMinute = key{operator: principal.ID}, l.perMinute*OperatorFactor
	}
	return l.table.Take(l.clock(), ask)
}

// Limit is middleware after the authentication that
// refuses too frequent changes; handle responds to errors.
func (l *Limiter) Limit(handle func(func(http.ResponseWriter, *http.Request) error) http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return handle(func(w http.ResponseWriter, r *http.Request) error {
			if changes(r) {
				if result := l.take(identity.FromContext(r.Context())); !result.Allowed {
					httpapi.SetRateLimit(w.Header(), result)
					return httpapi.RateLimited(result, "organization, of requests that change something")
				}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// changes reports whether a request may change something.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// maxBody is the largest body of any handler here, in bytes.
const maxBody = 64 << 10

// Whole passes a request on once its body is read. A slow
// body could outlast the revocation of its sender's
// credential, which is therefore checked after Whole, too.
func Whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken, err := httpapi.ReadBody(w, r, maxBody)
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
