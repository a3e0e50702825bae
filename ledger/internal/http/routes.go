package http

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/identity"
)

// Scopes of service tokens: to read books, and to change them.
const (
	ScopeRead  = "billing:read"
	ScopeWrite = "billing:write"
)

// An API serves service tokens.
type API struct {
	*services.Services
	Guard         *identity.Guard
	StatementPage func(http.ResponseWriter, *http.Request, ledger.Statement) // writes a statement as HTML
}

// Mount adds the ledger's routes.
func (a *API) Mount(router chi.Router) {
	httpapi.Describe(router, module.Name, OpenAPI())
	for _, operation := range operations(a) {
		operation.Mount(router.With(a.Guard.RequireScope(operation.Scopes[0])))
	}
}

var module = openapi.Module{
	Name: "ledger", Tag: "usage", Description: "What organizations may send, have sent, and subscribe to", Credential: openapi.ServiceToken,
	Problem: problemBody{},
	Problems: map[int]string{
		http.StatusBadRequest:          "A value is wrong; the answer names it and says what to do",
		http.StatusUnauthorized:        "The service token is missing or not valid",
		http.StatusForbidden:           "forbidden: the service token lacks the scope",
		http.StatusNotFound:            "Unknown, or out of the service token's reach",
		http.StatusTooManyRequests:     "rate_limited: the organization, the project or the credential asks too often. Wait for Retry-After",
		http.StatusInternalServerError: "The server failed; send the whole request again",
	},
}

// problemBody is an error answer of the ledger.
type problemBody struct {
	httpapi.ProblemBody
	Limit int `json:"limit,omitempty" description:"limit_reached: how many there may be"`
}

// OpenAPI describes the routes.
func OpenAPI() []byte { return module.Document(operations(new(API))) }

func operations(a *API) []openapi.Operation {
	return slices.Concat(
		balanceOperations(a), entryOperations(a), usageOperations(a), refusalOperations(a), chainOperations(a), verificationOperations(a),
		accountOperations(a), subscriptionOperations(a), grantOperations(a), adjustmentOperations(a), budgetOperations(a), thresholdOperations(a),
		statementOperations(a), forecastOperations(a), dryRunOperations(a), simulationOperations(a), testClockOperations(a),
	)
}

// idempotent is the headers of a change.
type idempotent struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" description:"1 to 255 printable ASCII characters. The same request with the same key within 30 days is answered as it was and has no further effect; another one is refused: idempotency_key_reused"`
}

// limitReached describes the refusal of a change too many.
func limitReached() map[int]string {
	return map[int]string{http.StatusConflict: "limit_reached: the organization has as many grants or budgets as it may, " +
		"or there are as many decisions about it in this period as there may be"}
}

// requestOf returns a deciding request and its organization.
func requestOf(r *http.Request) (organization string, request unitofwork.Request, err error) {
	if organization, err = organizationFromPath(r); err != nil {
		return "", request, err
	}
	key, err := httpapi.IdempotencyKey(r)
	return organization, unitofwork.Request{
		Actor: identity.FromContext(r.Context()).ID, ID: httpapi.RequestID(r.Context()), IdempotencyKey: key,
	}, err
}

// requestWith is requestOf that decodes the body into body.
func requestWith(w http.ResponseWriter, r *http.Request, body any) (organization string, request unitofwork.Request, err error) {
	if organization, request, err = requestOf(r); err != nil {
		return organization, request, err
	}
	return organization, request, httpapi.ReadJSON(w, r, body)
}

// organizationFromPath returns the path's organization. One outside the token's
// reach looks missing.
func organizationFromPath(r *http.Request) (string, error) {
	organization := chi.URLParam(r, "organization")
	if organization == "" || !identity.FromContext(r.Context()).Reaches(organization) {
		return "", httpapi.NotFound("organization", organization)
	}
	return organization, nil
}

// itself is a body that needs no other form.
func itself[B any](body B) B { return body }

// A handler answers a request.
type handler = func(http.ResponseWriter, *http.Request) error

// reads answers with what get reads of the path's organization.
func reads[T, B any](get func(ctx context.Context, organization string) (T, error), body func(T) B) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		organization, err := organizationFromPath(r)
		if err != nil {
			return err
		}
		found, err := get(r.Context(), organization)
		if err != nil {
			return answer(err, organization)
		}
		httpapi.WriteJSON(w, http.StatusOK, body(found))
		return nil
	}
}

// lists answers with a page of what get reads of the path's organization,
// one item more than the page's limit where it goes on.
func lists[T, B, C any](parse func(*http.Request) (page[C], error), get func(ctx context.Context, organization string, page page[C]) ([]T, error),
	body func(T) B, place func(T) C) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		page, err := parse(r)
		if err != nil {
			return err
		}
		organization, err := organizationFromPath(r)
		if err != nil {
			return err
		}
		found, err := get(r.Context(), organization, page)
		if err != nil {
			return answer(err, organization)
		}
		httpapi.WriteList(w, r, found, page.limit, body, place)
		return nil
	}
}

// asks answers with what get makes of the body. It changes nothing.
func asks[In, T, B any](get func(ctx context.Context, organization string, in In) (T, error), body func(T) B) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		organization, err := organizationFromPath(r)
		if err != nil {
			return err
		}
		var in In
		if err := httpapi.ReadJSON(w, r, &in); err != nil {
			return err
		}
		found, err := get(r.Context(), organization, in)
		if err != nil {
			return answer(err, organization)
		}
		httpapi.WriteJSON(w, http.StatusOK, body(found))
		return nil
	}
}

// changes answers with what a deciding request has made of its body.
func changes[In, T, B any](status int, decide func(ctx context.Context, organization string, request unitofwork.Request, in In) (T, error),
	body func(T) B) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var in In
		organization, request, err := requestWith(w, r, &in)
		if err != nil {
			return err
		}
		made, err := decide(r.Context(), organization, request, in)
		if err != nil {
			return answer(err, organization)
		}
		httpapi.WriteJSON(w, status, body(made))
		return nil
	}
}

// answer maps a service's error about an organization to the answer.
func answer(err error, organization string) error {
	var invalid ledger.Invalid
	var full ledger.LimitReached
	var project ledger.NoProject
	switch {
	case errors.Is(err, ledger.ErrNoOrganization):
		return httpapi.NotFound("organization", organization)
	case errors.As(err, &project):
		return httpapi.NotFound("project", project.Project)
	case errors.Is(err, ledger.ErrNotKept):
		return httpapi.Invalid("?at", httpapi.CodeInvalidRequest, "What was booked then is no longer kept.", "Use a later time.")
	case errors.Is(err, ledger.ErrNoStatement):
		return httpapi.NewProblem(http.StatusNotFound, httpapi.CodeNotFound, "The organization has no statement of this number.")
	case errors.Is(err, idempotency.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.As(err, &invalid):
		return httpapi.Invalid("/"+invalid.Field, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error()).With("limit", full.Limit)
	}
	return err
}

// A page is the requested part of a list with cursors of type C.
type page[C any] struct {
	from, to time.Time // half-open
	after    C         // where it continues; zero: the start
	limit    int
}

// spanQuery is the query of a list by time.
type spanQuery struct {
	From time.Time `query:"from" description:"Earliest instant, inclusive"`
	To   time.Time `query:"to" description:"Latest instant, exclusive"`
	httpapi.Page
}

// pageOf parses the requested page of r.
func pageOf[C any](r *http.Request) (asked page[C], err error) {
	parsed, err := httpapi.ParsePage(r)
	if err != nil {
		return asked, err
	}
	if asked.from, asked.to, err = span(r); err != nil {
		return asked, err
	}
	return asked, asked.parse(r, parsed)
}

// placeOf is pageOf for a list that is not by time.
func placeOf[C any](r *http.Request) (asked page[C], err error) {
	parsed, err := httpapi.ParsePage(r)
	if err != nil {
		return asked, err
	}
	return asked, asked.parse(r, parsed)
}

func (p *page[C]) parse(r *http.Request, parsed httpapi.Page) error {
	if p.limit = parsed.Limit; parsed.Cursor == "" {
		return nil
	}
	return httpapi.DecodeCursor(r, parsed.Cursor, &p.after)
}

// instant parses a time of the query; fallback where it is absent.
func instant(r *http.Request, name string, fallback time.Time) (time.Time, error) {
	at, err := httpapi.QueryTime(r.URL.Query(), name)
	switch {
	case err != nil:
		return at, err
	case at.IsZero():
		return fallback, nil
	case at.Before(earliest()) || at.After(latest()):
		return at, httpapi.Invalid("?"+name, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", name, r.URL.Query().Get(name)),
			"Use a time of the years 1970 to 8999.")
	}
	return at, nil
}

// The default span of a list.
func earliest() time.Time { return time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) }
func latest() time.Time   { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

// span parses from and to of the query: half-open, all time where absent.
func span(r *http.Request) (from, to time.Time, err error) {
	from, errFrom := instant(r, "from", earliest())
	to, errTo := instant(r, "to", latest())
	if err = errors.Join(errFrom, errTo); err == nil {
		err = httpapi.CheckSpan(r.URL.Query(), from, to)
	}
	return from, to, err
}

// An export is a whole list, as lines of JSON or as CSV.
type export[T any] struct {
	pages   iter.Seq2[[]T, error]
	columns []string
	cells   func(T) []string // of a line of CSV
	body    func(T) any      // of a line of JSON
}

// pagesOf yields the pages of a list, each read at its own instant, up to
// limit if the request has one. next returns at most so many items, and
// whether there may be more.
func pagesOf[T any](r *http.Request, limit int, next func(limit int) (items []T, more bool, err error)) iter.Seq2[[]T, error] {
	left := limit
	if !r.URL.Query().Has("limit") {
		left = math.MaxInt
	}
	return func(yield func([]T, error) bool) {
		for more := true; more && left > 0; {
			var items []T
			var err error
			if items, more, err = next(min(left, httpapi.MaxLimit)); err != nil {
				yield(nil, err)
				return
			}
			if left -= len(items); !yield(items, nil) {
				return
			}
		}
	}
}

// write writes page by page and holds one at a time. A failure after
// the first page truncates the answer.
func (e export[T]) write(w http.ResponseWriter, mediaType string) error {
	out := httpapi.NewPacedWriter(w)
	var line func(T) error
	for page, err := range e.pages {
		if err != nil {
			return err
		}
		if line == nil {
			w.Header().Set("Content-Type", mediaType)
			line = e.lines(out, mediaType)
		}
		for _, item := range page {
			if err := line(item); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// lines writes the header of a CSV and returns the function that writes an item.
func (e export[T]) lines(out *httpapi.PacedWriter, mediaType string) func(T) error {
	if mediaType == httpapi.TypeLines {
		encoder := json.NewEncoder(out)
		return func(item T) error { return encoder.Encode(e.body(item)) }
	}
	table := csv.NewWriter(out)
	writeRow := func(cells []string) error {
		_ = table.Write(cells)
		table.Flush() // into out
		return table.Error()
	}
	_ = writeRow(e.columns) // out keeps the error
	return func(item T) error { return writeRow(e.cells(item)) }
}
