package http

import (
	"cmp"
	"context"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// listing is the handler of a list of what belongs to one thing. whose says which thing, mostly by the query's parameter, "" where
// that has to be given and is not; find finds a page of the list, show shows an item, and place is where an item stands.
func listing[F, I any](parameter string, whose func(*http.Request) (id string),
	find func(ctx context.Context, caller tenants.Caller, id string, after postgres.Position, limit int) ([]F, error),
	show func(F) I, place func(F) postgres.Position) http.HandlerFunc {
	return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		id := whose(r)
		if id == "" {
			return missing(parameter)
		}
		after, limit, err := pageOf(r, parameter)
		if err != nil {
			return err
		}
		found, err := find(r.Context(), callerOf(r), id, after, limit+1)
		if err != nil {
			return problemOf(err, parameter, id)
		}
		httpapi.WriteList(w, r, found, limit, show, place)
		return nil
	})
}

// pageOf is where a list of requests goes on, and how far. A parameter that is none of filters is refused: a filter that
// was overlooked would show too much.
func pageOf(r *http.Request, filters ...string) (after postgres.Position, limit int, err error) {
	if err := httpapi.OnlyKnown(r, nil, append(filters, "limit", "cursor")...); err != nil {
		return after, 0, err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil || page.Cursor == "" {
		return after, page.Limit, err
	}
	if err := httpapi.DecodeCursor(r, page.Cursor, &after); err != nil {
		return after, 0, err
	}
	return after, page.Limit, nil
}

// organizationOf is the organization that a list is about: the one in the query, else what the caller is bound to.
func organizationOf(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("organization"), callerOf(r).Organization)
}

// oneOrganizationOf is organizationOf for what the installation itself has none of.
func oneOrganizationOf(r *http.Request) string {
	if organization := organizationOf(r); organization != tenants.Installation {
		return organization
	}
	return ""
}

// memberOf is the member that a list is about.
func memberOf(r *http.Request) string { return r.URL.Query().Get("member") }

// missing is the answer where a query lacks the parameter that it is about.
func missing(parameter string) error {
	return httpapi.Invalid("?"+parameter, httpapi.CodeInvalidRequest, "The query lacks "+parameter+".",
		"Send ?"+parameter+"= with the id of the "+parameter+".")
}
