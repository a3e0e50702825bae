package http

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

// Cross-origin resource sharing, as the Fetch standard defines it. A page may
// use the keys that list its origin, and no others.
const (
	headerOrigin      = "Origin"
	headerAllowOrigin = "Access-Control-Allow-Origin"
	preflightKeptFor  = "600" // seconds
)

// preflight answers a browser that asks, without the key, whether a page may
// send: yes if any key lists the page's origin.
func (in *Intake) preflight(w http.ResponseWriter, r *http.Request) error {
	if err := in.Ready(); err != nil {
		return httpapi.Starting(err)
	}
	origin := r.Header.Get(headerOrigin)
	if !in.Service.Credentials.ServesOrigin(origin) {
		return httpapi.NewProblem(http.StatusForbidden, "origin_not_allowed",
			fmt.Sprintf("No API key lists the origin %.100q. Add it to the web pages of a key, under API Keys in the settings.", origin))
	}
	header := w.Header()
	allow(header, origin)
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", "*")
	header.Set("Access-Control-Max-Age", preflightKeptFor)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func allow(header http.Header, origin string) {
	header.Set(headerAllowOrigin, origin)
	header.Set("Access-Control-Expose-Headers", "*")
	header.Add("Vary", headerOrigin)
}

// allowOrigin lets a page read the answer, if the key is one of its own, or unknown.
func (q *request) allowOrigin() {
	origin := q.r.Header.Get(headerOrigin)
	if origin == "" {
		return
	}
	if q.caller.Known() && slices.Contains(q.caller.Origins, origin) || !q.caller.Known() && q.in.Service.Credentials.ServesOrigin(origin) {
		allow(q.w.Header(), origin)
	}
}

// admitPage refuses a key of web pages that comes from elsewhere, or from
// where too much came without effect: its organization is not to blame.
func (q *request) admitPage() error {
	if !q.caller.FromPage() {
		return nil
	}
	if origin := q.r.Header.Get(headerOrigin); !slices.Contains(q.caller.Origins, origin) {
		return httpapi.NewProblem(http.StatusForbidden, "origin_not_allowed",
			fmt.Sprintf("The API key is for the web pages of %s, and the request's Origin is %.100q. Use another key, or add the origin to this one.",
				strings.Join(q.caller.Origins, ", "), origin))
	}
	if wait := q.in.Service.WaitOf(q.network()); wait > 0 {
		return wastedTooMuch("address", wait)
	}
	return nil
}

// idempotency is the request's idempotency key. Those of pages are separate
// for each body: one visitor must not stand in the way of another.
func (q *request) idempotency() string {
	if q.options.idempotency == "" || !q.caller.FromPage() {
		return q.options.idempotency
	}
	return hex.EncodeToString(q.digest[:]) + " " + q.options.idempotency
}
