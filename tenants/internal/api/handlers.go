package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A Handler answers a request or returns why it cannot.
type Handler = func(http.ResponseWriter, *http.Request) error

// ChangeHandler handles requests to change the thing
// named by the path, called what: read reads the
// change, carryOut makes it, show returns the result.
func ChangeHandler[W, T, J any](k *Kit, what string, read func(http.ResponseWriter, *http.Request) (wanted W, err error),
	carryOut func(ctx context.Context, request unitofwork.Request, id string, wanted W) (T, error), show func(T) J) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		request, err := k.RequestOf(r)
		if err != nil {
			return err
		}
		wanted, err := read(w, r)
		if err != nil {
			return err
		}
		id := chi.URLParam(r, "id")
		changed, err := carryOut(r.Context(), request, id, wanted)
		if err != nil {
			return ProblemOf(err, what, id)
		}
		httpapi.WriteJSON(w, http.StatusOK, show(changed))
		return nil
	}
}

// CreateHandler handles requests to create something by a body.
func CreateHandler[B, J any](k *Kit, create func(ctx context.Context, request unitofwork.Request, body B) (J, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body B
		request, err := k.RequestWith(w, r, &body)
		if err != nil {
			return err
		}
		created, err := create(r.Context(), request, body)
		if err != nil {
			return err
		}
		httpapi.WriteJSON(w, http.StatusCreated, created)
		return nil
	}
}

// WithoutBody adapts a change without a body to ChangeHandler.
func WithoutBody[T any](carryOut func(context.Context, unitofwork.Request, string) (T, error)) func(
	context.Context, unitofwork.Request, string, struct{}) (T, error) {
	return func(ctx context.Context, request unitofwork.Request, id string, _ struct{}) (T, error) {
		return carryOut(ctx, request, id)
	}
}

// NoBody reads nothing of a request.
func NoBody(http.ResponseWriter, *http.Request) (none struct{}, err error) { return none, nil }

// ShowHandler handles requests to read the
// thing named by the path, called what.
func ShowHandler[T, J any](what string, find func(ctx context.Context, caller tenants.Caller, id string) (T, error), show func(T) J) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := chi.URLParam(r, "id")
		found, err := find(r.Context(), CallerOf(r), id)
		if err != nil {
			return ProblemOf(err, what, id)
		}
		httpapi.WriteJSON(w, http.StatusOK, show(found))
		return nil
	}
}

// NameBody is the body that NameOf reads.
type NameBody struct {
	Name string `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
}

// NameOf is the name in the body of a request to rename.
func NameOf(w http.ResponseWriter, r *http.Request) (string, error) {
	var body NameBody
	err := httpapi.ReadJSON(w, r, &body)
	return body.Name, err
}

// ReasonBody is the body that ReasonOf reads.
type ReasonBody struct {
	Reason string `json:"reason" maxLength:"500" description:"For people"`
}

// ReasonOf is the reason in the body of a revocation. The body
// may be absent: an emergency must not fail for lack of one.
func ReasonOf(w http.ResponseWriter, r *http.Request) (string, error) {
	var body ReasonBody
	if r.ContentLength == 0 {
		return "", nil
	}
	err := httpapi.ReadJSON(w, r, &body)
	return body.Reason, err
}

// ListHandler handles a list of what belongs to one thing. whose
// is that thing's id, "" if the query lacks the parameter; find
// finds a page, show formats an item, place is an item's position.
func ListHandler[F, I any](parameter string, whose func(*http.Request) (id string),
	find func(ctx context.Context, caller tenants.Caller, id string, after query.Position, limit int) ([]F, error),
	show func(F) I, place func(F) query.Position) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := whose(r)
		if id == "" {
			return MissingParameter(parameter)
		}
		after, limit, err := PageOf(r)
		if err != nil {
			return err
		}
		found, err := find(r.Context(), CallerOf(r), id, after, limit+1)
		if err != nil {
			return ProblemOf(err, parameter, id)
		}
		httpapi.WriteList(w, r, found, limit, show, place)
		return nil
	}
}

// PageOf is where a list continues, and its limit.
func PageOf(r *http.Request) (after query.Position, limit int, err error) {
	page, err := httpapi.ParsePage(r)
	if err != nil || page.Cursor == "" {
		return after, page.Limit, err
	}
	if err := httpapi.DecodeCursor(r, page.Cursor, &after); err != nil {
		return after, 0, err
	}
	return after, page.Limit, nil
}

// OrganizationOf is the organization in the query, else the caller's.
func OrganizationOf(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("organization"), CallerOf(r).Organization)
}

// OneOrganizationOf is OrganizationOf where the installation has none.
func OneOrganizationOf(r *http.Request) string {
	if organization := OrganizationOf(r); organization != tenants.Installation {
		return organization
	}
	return ""
}

// MissingParameter is the problem of a query without a required parameter.
func MissingParameter(parameter string) error {
	return httpapi.Invalid("?"+parameter, httpapi.CodeInvalidRequest, "The query lacks "+parameter+".",
		"Send ?"+parameter+"= with the id of the "+parameter+".")
}
