package http

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// changing is the handler of requests to change the thing that their path names, which is called what: read reads how, carryOut
// does it, and show shows the thing as it is then.
func changing[W, T, J any](a *API, what string, read func(http.ResponseWriter, *http.Request) (wanted W, err error),
	carryOut func(ctx context.Context, request registrar.Request, id string, wanted W) (T, error), show func(T) J) http.HandlerFunc {
	return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		request, err := a.requestOf(r)
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
			return problemOf(err, what, id)
		}
		httpapi.WriteJSON(w, http.StatusOK, show(changed))
		return nil
	})
}

// without makes a change that takes no more than the name of the thing fit for changing, with nothing to read.
func without[T any](carryOut func(context.Context, registrar.Request, string) (T, error)) func(
	context.Context, registrar.Request, string, struct{}) (T, error) {
	return func(ctx context.Context, request registrar.Request, id string, _ struct{}) (T, error) {
		return carryOut(ctx, request, id)
	}
}

func nothing(http.ResponseWriter, *http.Request) (none struct{}, err error) { return none, nil }

// showing is the handler of requests to see the thing that their path names, which is called what.
func showing[T, J any](what string, find func(ctx context.Context, caller tenants.Caller, id string) (T, error), show func(T) J) http.HandlerFunc {
	return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		id := chi.URLParam(r, "id")
		found, err := find(r.Context(), callerOf(r), id)
		if err != nil {
			return problemOf(err, what, id)
		}
		httpapi.WriteJSON(w, http.StatusOK, show(found))
		return nil
	})
}

// requestWith is a request that changes something, with its body read into body.
func (a *API) requestWith(w http.ResponseWriter, r *http.Request, body any) (registrar.Request, error) {
	request, err := a.requestOf(r)
	if err != nil {
		return request, err
	}
	return request, httpapi.ReadJSON(w, r, body)
}

// nameOf is the name in the body of a request that gives something another one.
func nameOf(w http.ResponseWriter, r *http.Request) (string, error) {
	var body struct {
		Name string `json:"name"`
	}
	err := httpapi.ReadJSON(w, r, &body)
	return body.Name, err
}

// reasonOf is the reason in the body of a revocation. The body may be absent: an emergency must not fail for lack of one.
func reasonOf(w http.ResponseWriter, r *http.Request) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if r.ContentLength == 0 {
		return "", nil
	}
	err := httpapi.ReadJSON(w, r, &body)
	return body.Reason, err
}
