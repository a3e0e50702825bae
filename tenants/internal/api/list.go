package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

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
