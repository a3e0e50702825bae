package routes

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ruletext"
)

// Rules are the use cases of a module's rules. What is wrong with a request is
// a Problem, or a ruletext.Conflict.
type Rules struct {
	// Versions lists those of a project, which who may read.
	Versions func(ctx context.Context, who identity.Principal, project string) ruletext.Lister
	// Set grants the wish of a request, and returns the newest version.
	Set func(r *http.Request, wish ruletext.Wish) (ruletext.Version, error)
	// Preview says what a text would do to a project, as it is answered or shown.
	Preview func(ctx context.Context, who identity.Principal, project, text string) (any, error)
}

// A Handler handles a request.
type Handler = func(w http.ResponseWriter, r *http.Request) error

// A Way leads requests to their handler.
type Way struct {
	Wrap    func(Handler) Handler
	Headers any // that it reads, as openapi.Operation has them
}

// An API is the routes of a module's rules for API keys. V is the body of a version
// without its text, T with it.
type API[V, T any] struct {
	Rules
	Path    string // such as /v1/projects/{project}/error-rules
	Noun    string // in the ids of the operations, such as ErrorRules
	Purpose string // such as "by which errors of a project are grouped"
	Holds   string // when new rules hold, in sentences

	Reads, Tries, Changes Way

	Body  any               // of a request that sets rules: with rules and ChangeBody
	Trial openapi.Operation // the preview: summary, description, body and answer

	Show      func(ruletext.Version) V
	ShowWhole func(ruletext.Version) T
}

// ChangeBody is what every change of rules may say.
type ChangeBody struct {
	Note      string `json:"note,omitempty" maxLength:"200" description:"Why, on one line"`
	IfVersion *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the rules are at this version, or are the wanted ones already: sent again, the request replaces nothing that somebody else has set since"`
}

// AuthorBody is who set a version, and why.
type AuthorBody struct {
	Actor     *string `json:"actor" description:"Id of the member or API key that set them"`
	ActorName *string `json:"actor_name" description:"Of the member, where it was known; else null"`
	Note      *string `json:"note"`
	Restored  *int64  `json:"restored" description:"The version whose rules they are, if they were restored"`
}

// NewAuthorBody returns that of a version.
func NewAuthorBody(v ruletext.Version) AuthorBody {
	return AuthorBody{httpapi.OrNull(v.By), httpapi.OrNull(v.ByName), httpapi.OrNull(v.Note), httpapi.OrNull(v.Restored)}
}

// Operations are the routes, in a table that mounts and describes them.
func (a *API[V, T]) Operations() []openapi.Operation {
	missing := map[int]string{http.StatusNotFound: "There is no such project in the key's organization, or no such version"}
	changed := map[int]string{
		http.StatusNotFound:  missing[http.StatusNotFound],
		http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
		http.StatusConflict:  "version_conflict: somebody changed the rules meanwhile; version is their present one",
	}
	newest := openapi.Answer{Type: *new(T), Description: "The newest version"}
	preview := a.Trial
	preview.Route, preview.ID, preview.Problems = "POST "+a.Path+"/preview", "preview"+a.Noun, missing
	preview.Handle, preview.Headers, preview.Query = a.Tries.to(a.preview), a.Tries.Headers, struct{}{}
	return []openapi.Operation{
		{
			Route: "GET " + a.Path, Handle: a.Reads.to(a.newest), ID: "get" + a.Noun, Summary: "The rules " + a.Purpose,
			Query: struct{}{}, Answer: newest, Problems: missing,
		},
		{
			Route: "PUT " + a.Path, Handle: a.Changes.to(a.set), ID: "set" + a.Noun, Summary: "Set the rules " + a.Purpose,
			Description: a.Holds + " The same rules again change nothing. A fault names its line and character.",
			Headers:     a.Changes.Headers, Query: struct{}{}, Body: openapi.Body{Type: a.Body}, Answer: newest, Problems: changed,
		},
		preview,
		{
			Route: "GET " + a.Path + "/versions", Handle: a.Reads.to(a.versions), ID: "list" + a.Noun + "Versions",
			Summary: "The last 100 versions of a project's rules, the newest first: who set them, when and why",
			Query:   httpapi.Page{}, Answer: openapi.Answer{Type: httpapi.List[V]{}, Description: "A page of versions"}, Problems: missing,
		},
		{
			Route: "GET " + a.Path + "/versions/{version}", Handle: a.Reads.to(a.version), ID: "get" + a.Noun + "Version",
			Summary: "A version of a project's rules",
			Query:   struct{}{}, Answer: openapi.Answer{Type: *new(T), Description: "The version"}, Problems: missing,
		},
		{
			Route: "POST " + a.Path + "/versions/{version}/restore", Handle: a.Changes.to(a.restore), ID: "restore" + a.Noun,
			Summary: "Set the rules of a project as they were in an earlier version. That makes a new version",
			Headers: a.Changes.Headers, Query: struct{}{}, Body: openapi.Body{Type: ChangeBody{}}, Answer: newest, Problems: changed,
		},
	}
}

// to leads to a handler, whose Conflict it answers.
func (way Way) to(handle Handler) Handler {
	return way.Wrap(func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		var conflict ruletext.Conflict
		if errors.As(err, &conflict) {
			return httpapi.NewProblem(http.StatusConflict, "version_conflict",
				conflict.Error()+" Read them, and send the request again with the new version if it still makes sense.").With("version", conflict.Now.Number)
		}
		return err
	})
}

func (a *API[V, T]) list(r *http.Request) ruletext.Lister {
	return a.Versions(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "project"))
}

func (a *API[V, T]) write(w http.ResponseWriter, v ruletext.Version, err error) error {
	if err == nil {
		httpapi.WriteJSON(w, http.StatusOK, a.ShowWhole(v))
	}
	return err
}

func (a *API[V, T]) newest(w http.ResponseWriter, r *http.Request) error {
	v, err := a.list(r).Newest()
	return a.write(w, v, err)
}

func (a *API[V, T]) version(w http.ResponseWriter, r *http.Request) error {
	number, err := ruletext.ParseNumber(chi.URLParam(r, "version"))
	if err != nil {
		return err
	}
	v, err := a.list(r).Find(number)
	return a.write(w, v, err)
}

func (a *API[V, T]) versions(w http.ResponseWriter, r *http.Request) error {
	page, err := httpapi.ParsePage(r)
	before := int64(math.MaxInt64)
	if err == nil && page.Cursor != "" {
		err = httpapi.DecodeCursor(r, page.Cursor, &before)
	}
	if err != nil {
		return err
	}
	found, err := a.list(r)(before, page.Limit+1)
	if err == nil {
		httpapi.WriteList(w, r, found, page.Limit, a.Show, func(last ruletext.Version) int64 { return last.Number })
	}
	return err
}

// triedBody is the text of rules.
type triedBody struct {
	Rules *string `json:"rules"` // nil: it is missing, and not to be taken for no rules
}

func (b triedBody) text() (string, error) {
	if b.Rules == nil {
		return "", httpapi.Invalid("/rules", httpapi.CodeInvalidRequest, "The text of the rules is missing.", `Send it as rules: "" for no rules.`)
	}
	return *b.Rules, nil
}

func (a *API[V, T]) set(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		triedBody
		ChangeBody
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	text, err := body.text()
	if err != nil {
		return err
	}
	return a.change(w, r, body.ChangeBody, ruletext.Wish{Text: text})
}

func (a *API[V, T]) restore(w http.ResponseWriter, r *http.Request) error {
	var body ChangeBody
	number, err := ruletext.ParseNumber(chi.URLParam(r, "version"))
	if err == nil {
		err = httpapi.ReadJSON(w, r, &body)
	}
	if err != nil {
		return err
	}
	return a.change(w, r, body, ruletext.Wish{Restore: number})
}

func (a *API[V, T]) change(w http.ResponseWriter, r *http.Request, body ChangeBody, wish ruletext.Wish) error {
	wish.Project, wish.Note, wish.IfVersion = chi.URLParam(r, "project"), body.Note, body.IfVersion
	v, err := a.Set(r, wish)
	return a.write(w, v, err)
}

func (a *API[V, T]) preview(w http.ResponseWriter, r *http.Request) error {
	var body triedBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	text, err := body.text()
	if err != nil {
		return err
	}
	made, err := a.Preview(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "project"), text)
	if err == nil {
		httpapi.WriteJSON(w, http.StatusOK, made)
	}
	return err
}
