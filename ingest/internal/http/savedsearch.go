package http

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// Saved serves saved searches and their alerts.
type Saved struct{ Service *saved.Service }

func saving(s *Saved) []openapi.Operation {
	conflict := map[int]string{http.StatusConflict: "conflict: it was changed since that version, or another one has this name; limit_reached"}
	return append([]openapi.Operation{
		{
			Route: "GET /v1/searches", Handle: s.list, ID: "listSearches", Summary: "The saved searches that everybody sees",
			Query: searchesQuery{}, Answer: openapi.Answer{Type: httpapi.List[searchBody]{}, Description: "A page, by name"},
			Problems: map[int]string{http.StatusNotFound: "There is no such project in the organization"},
		},
		{
			Route: "POST /v1/searches", Handle: s.create, ID: "saveSearch", Summary: "Save a search for everybody",
			Headers: creationHeaders{}, Body: openapi.Body{Type: newSearchBody{}}, Answer: openapi.Answer{Status: http.StatusCreated, Type: searchBody{}},
			Problems: map[int]string{
				http.StatusConflict: "conflict: another one of the project has this name; limit_reached",
				http.StatusNotFound: "There is no such project in the organization",
			},
		},
		{
			Route: "GET /v1/searches/{search}", Handle: s.get, ID: "getSearch", Summary: "One saved search", Answer: openapi.Answer{Type: searchBody{}},
		},
		{
			Route: "PUT /v1/searches/{search}", Handle: written(s.update), ID: "changeSearch", Summary: "Replace a saved search",
			Headers: repeatableHeaders{}, Body: openapi.Body{Type: changedSearchBody{}}, Answer: openapi.Answer{Type: searchBody{}}, Problems: conflict,
		},
		{
			Route: "DELETE /v1/searches/{search}", Handle: written(s.remove), ID: "deleteSearch", Summary: "Delete a saved search, with its alert",
			Query: versionQuery{}, Headers: repeatableHeaders{}, Answer: openapi.Answer{Type: searchBody{}, Description: "The search as it was"}, Problems: conflict,
		},
	}, alerting(s)...)
}

type searchesQuery struct {
	Project string `query:"project" description:"Only those of this project, and those of all projects"`
	Name    string `query:"name" description:"Only those of this name, whatever its case"`
	httpapi.Page
}

type creationHeaders struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"A request with a key that its API key has used before is answered with what was saved then, as it is now"`
}

// repeatableHeaders are those of changes that can be repeated.
type repeatableHeaders struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"Not needed: the same request again changes nothing more"`
}

// written refuses a change with an invalid Idempotency-Key.
func written(change func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := httpapi.IdempotencyKey(r); err != nil {
			return err
		}
		return change(w, r)
	}
}

type versionQuery struct {
	Version int64 `query:"version" minimum:"1" description:"Only if it still has this version"`
}

type newSearchBody struct {
	Name        string   `json:"name" required:"true" minLength:"1" maxLength:"80"`
	Project     string   `json:"project" maxLength:"64" description:"Empty: all projects"`
	Query       string   `json:"q" maxLength:"2000" description:"As that of GET /v1/logs"`
	Levels      []string `json:"levels" enum:"debug,info,warn,error,fatal" description:"Only these levels; empty: all"`
	Environment string   `json:"environment" maxLength:"64"`
	Last        string   `json:"last" enum:"15m,1h,24h,7d,30d,any" description:"The time up to now; absent: from and to"`
	From        string   `json:"from" format:"date-time" description:"RFC 3339, in UTC"`
	To          string   `json:"to" format:"date-time"`
	Fields      []string `json:"fields" maxItems:"4" description:"Shown as columns"`
}

type changedSearchBody struct {
	newSearchBody
	Version int64 `json:"version" required:"true" minimum:"1" description:"That was read: another one is a conflict"`
}

type searchBody struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Project     string    `json:"project" description:"Empty: all projects"`
	Query       string    `json:"q"`
	Whole       string    `json:"query" description:"q with the levels and the environment, as one query"`
	Levels      []string  `json:"levels" enum:"debug,info,warn,error,fatal"`
	Environment string    `json:"environment"`
	Last        string    `json:"last" description:"15m, 1h, 24h, 7d, 30d, any; empty: from and to"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Fields      []string  `json:"fields"`
	Version     int64     `json:"version"`
	CreatedBy   string    `json:"created_by" description:"The id of a member or an API key"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedBy   string    `json:"updated_by"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func showSearch(s ingest.SavedSearch) searchBody {
	return searchBody{
		s.ID, s.Name, s.Project, s.Query, s.Whole(), append([]string{}, s.Levels...), s.Environment, s.Last, s.From, s.To, append([]string{}, s.Fields...), s.Version,
		s.CreatedBy, s.CreatedAt.UTC(), s.UpdatedBy, s.UpdatedAt.UTC(),
	}
}

func (b newSearchBody) search() ingest.SavedSearch {
	return ingest.SavedSearch{
		Name: b.Name, Project: b.Project, Query: b.Query, Levels: b.Levels, Environment: b.Environment, Last: b.Last, From: b.From, To: b.To, Fields: b.Fields,
	}
}

func (s *Saved) list(w http.ResponseWriter, r *http.Request) error {
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	query, who := r.URL.Query(), identity.FromContext(r.Context())
	filter := postgres.SearchFilter{Project: query.Get("project"), Name: query.Get("name"), Limit: page.Limit + 1}
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(r, page.Cursor, &filter.After); err != nil {
			return err
		}
	}
	found, err := s.Service.List(r.Context(), who, filter)
	if err != nil {
		return SavedProblem(err, filter.Project)
	}
	httpapi.WriteList(w, r, found, page.Limit, func(one postgres.SearchWithAlert) searchBody { return showSearch(one.SavedSearch) },
		func(last postgres.SearchWithAlert) postgres.Named {
			return postgres.Named{Name: last.Name, ID: last.ID}
		})
	return nil
}

func (s *Saved) create(w http.ResponseWriter, r *http.Request) error {
	var body newSearchBody
	key, err := httpapi.IdempotencyKey(r)
	if err == nil {
		err = httpapi.ReadJSON(w, r, &body)
	}
	if err != nil {
		return err
	}
	made, err := s.Service.Create(r.Context(), identity.FromContext(r.Context()), body.search(), true, key)
	if err != nil {
		return SavedProblem(err, body.Project)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showSearch(made))
	return nil
}

func (s *Saved) get(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "search")
	found, err := s.Service.Find(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return SavedProblem(err, id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showSearch(found))
	return nil
}

func (s *Saved) update(w http.ResponseWriter, r *http.Request) error {
	var body changedSearchBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	wanted := body.search()
	wanted.ID, wanted.Version = chi.URLParam(r, "search"), body.Version
	changed, err := s.Service.Update(r.Context(), identity.FromContext(r.Context()), wanted, true)
	if errors.Is(err, saved.ErrNoProject) {
		return SavedProblem(err, body.Project)
	}
	if err != nil {
		return SavedProblem(err, wanted.ID)
	}
	httpapi.WriteJSON(w, http.StatusOK, showSearch(changed))
	return nil
}

// version is that of the query; 0: none.
func version(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("version")
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 {
		return 0, httpapi.Invalid("?version", httpapi.CodeInvalidRequest, fmt.Sprintf("version is %q.", text), "Use the version that you have read.")
	}
	return version, nil
}

func (s *Saved) remove(w http.ResponseWriter, r *http.Request) error {
	version, err := version(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "search")
	gone, err := s.Service.Delete(r.Context(), identity.FromContext(r.Context()), id, version)
	if err != nil {
		return SavedProblem(err, id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showSearch(gone))
	return nil
}

// SavedProblem is the answer to an error of a saved.Service.
func SavedProblem(err error, id string) error {
	var invalid ingest.Invalid
	var full postgres.TooMany
	conflict := func(code, detail string) error { return httpapi.NewProblem(http.StatusConflict, code, detail) }
	switch {
	case errors.As(err, &invalid):
		return httpapi.Invalid("/"+invalid.Field, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	case errors.Is(err, saved.ErrNoProject):
		return httpapi.NotFound("project", id)
	case errors.Is(err, postgres.ErrNoSearch):
		return httpapi.NotFound("saved search", id)
	case errors.Is(err, postgres.ErrNoAlert):
		return httpapi.NotFound("alert of the saved search", id)
	case errors.Is(err, postgres.ErrSearchChanged):
		return conflict(httpapi.CodeConflict, "Somebody else has changed this since. Read it again, and change what you find.")
	case errors.Is(err, postgres.ErrTested):
		return conflict(httpapi.CodeConflict, "A test was sent within the last minute. Wait for it, or send another one later.")
	case errors.Is(err, postgres.ErrNameTaken):
		return conflict(httpapi.CodeConflict, "There is a saved search of this name already. Use another name.")
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error()).With("limit", full.Limit)
	case errors.Is(err, saved.ErrPrivate):
		return conflict(httpapi.CodeConflict, "Only a search that everybody sees has an alert. Share it, or delete its alert first.")
	case errors.Is(err, saved.ErrMayNot):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role may not change what everybody sees. Ask one of the "+sharers()+", or save it for yourself.")
	case errors.Is(err, saved.ErrNoMember):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden, "Only a member has searches of their own.")
	}
	return err
}
