package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// access lets callers do what they may, and
// answers with what comes of it.
type access struct {
	guard    *identity.Guard
	projects *identity.Directory
	groups   *groups.Groups
}

// A call is a request of somebody who may make it.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	who     identity.Principal
	project string         // of the path, if it has one, which the caller may read
	request groups.Request // of changes
	status  int            // of the answer, unless something is wrong
}

// A handler returns the body of an answer; nil: it has answered.
type handler func(c *call) (any, error)

func (c *call) ctx() context.Context { return c.r.Context() }

func (c *call) param(name string) string { return chi.URLParam(c.r, name) }

// read reads the body.
func (c *call) read(body any) error { return httpapi.ReadJSON(c.w, c.r, body) }

// with reads the body of a request for a handler.
func with[B any](fn func(c *call, body B) (any, error)) handler {
	return func(c *call) (any, error) {
		var body B
		if err := c.read(&body); err != nil {
			return nil, err
		}
		return fn(c, body)
	}
}

// page reads the page of a list, and where it begins, unless it is the first.
func (c *call) page(after any) (limit int, err error) {
	page, err := httpapi.ParsePage(c.r)
	if err == nil && page.Cursor != "" {
		err = httpapi.DecodeCursor(c.r, page.Cursor, after)
	}
	return page.Limit, err
}

// as shows what a use case has returned.
func as[T, B any](show func(T) B) func(found T, err error) (any, error) {
	return func(found T, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return show(found), nil
	}
}

// reads handles a request that changes nothing.
func (a *access) reads(fn handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		return a.answer(&call{w: w, r: r, who: identity.FromContext(r.Context())}, fn)
	}
}

// repeats handles a change that can be repeated without an Idempotency-Key.
func (a *access) repeats(fn handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := httpapi.IdempotencyKey(r); err != nil {
			return err
		}
		who := identity.FromContext(r.Context())
		return a.answer(&call{w: w, r: r, who: who, request: a.requestOf(r, who, "")}, fn)
	}
}

// changes handles a change with an API key, which
// must read its whole organization.
func (a *access) changes(fn handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		who := identity.FromContext(r.Context())
		if _, alone := who.OnlyProject(); alone {
			return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
				fmt.Sprintf(`The access of the API key is %q. Use a key whose access is "full", or change that of this one under API Keys.`, who.Access))
		}
		key, err := httpapi.IdempotencyKey(r)
		if err != nil {
			return err
		}
		return a.answer(&call{w: w, r: r, who: who, request: a.requestOf(r, who, key)}, fn)
	}
}

func (a *access) requestOf(r *http.Request, who identity.Principal, key string) groups.Request {
	by := groups.AuthorOf(r, a.guard)
	by.ID = who.ID
	return groups.Request{Who: who, By: by, Key: key}
}

func (a *access) answer(c *call, fn handler) error {
	if c.project = c.param("project"); slices.Contains(chi.RouteContext(c.ctx()).URLParams.Keys, "project") && !a.mayRead(c.who, c.project) {
		return httpapi.NotFound("project", c.project)
	}
	c.status = http.StatusOK
	body, err := fn(c)
	var conflict grouping.Conflict
	if errors.As(err, &conflict) {
		return a.conflict(c, conflict)
	}
	if err == nil && body != nil {
		httpapi.WriteJSON(c.w, c.status, body)
	}
	return groups.Problem(err)
}

// mayRead reports whether the caller may read the project: one of
// its organization, or only the key's own if it is bound to one.
// The key's own project counts before its creation is consumed.
func (a *access) mayRead(who identity.Principal, project string) bool {
	return who.ReadsProject(project) && !a.projects.Hides(who.Organization, project) &&
		(a.projects.Owns(who.Organization, project) || project != "" && project == who.Project)
}

// maxSince is how many decisions a conflict shows.
const maxSince = 20

// conflict shows the second of two what the first one did.
func (a *access) conflict(c *call, conflict grouping.Conflict) error {
	since, err := a.groups.Activity(c.ctx(), c.who, conflict.Group, conflict.Version+1, maxSince)
	if err != nil {
		return err
	}
	missed := []activityBody{}
	for _, activity := range since {
		if activity.Version > conflict.Wanted {
			missed = append(missed, newActivityBody(activity))
		}
	}
	return httpapi.NewProblem(http.StatusConflict, "version_conflict",
		conflict.Error()+" See activity, and send the request again with the new version if it still makes sense.").
		With("version", conflict.Version).With("activity", missed)
}

// problemBody is an error answer of the module.
type problemBody struct {
	httpapi.ProblemBody
	Version  int64          `json:"version,omitempty" description:"version_conflict: that of the group, or of the rules"`
	Activity []activityBody `json:"activity,omitempty" maxItems:"20" description:"version_conflict: what was decided since if_version, the newest first"`
}

type idempotent struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" description:"1 to 255 printable ASCII characters. The same request with the same key within 30 days is answered as it was and has no further effect; another one is refused: idempotency_key_reused"`
}

// repeatable are the headers of changes that can be repeated.
type repeatable struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"Not needed: the same request again changes nothing more"`
}

// itemsOf shows the items of a list.
func itemsOf[T, B any](found []T, show func(T) B) []B {
	bodies := make([]B, len(found))
	for i, item := range found {
		bodies[i] = show(item)
	}
	return bodies
}
