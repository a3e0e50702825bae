package http

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

type groupBody struct {
	ID           string          `json:"id"`
	Project      string          `json:"project"`
	Title        string          `json:"title"`
	Type         string          `json:"type"`
	Culprit      string          `json:"culprit"`
	Status       grouping.Status `json:"status"`
	Count        int64           `json:"count"`
	FirstSeen    time.Time       `json:"first_seen"`
	LastSeen     time.Time       `json:"last_seen"`
	Levels       []string        `json:"levels"`
	Environments []string        `json:"environments"`
}

func newGroupBody(g postgres.Group) groupBody {
	return groupBody{
		ID: g.ID, Project: g.Project, Title: g.Title, Type: g.Type, Culprit: g.Culprit, Status: g.Status, Count: g.Count,
		FirstSeen: g.FirstSeen.UTC(), LastSeen: g.LastSeen.UTC(), Levels: g.Severities.Names(), Environments: g.Environments,
	}
}

type groupDetailBody struct {
	groupBody
	Occurrences []occurrenceBody     `json:"occurrences"`
	Why         postgres.Explanation `json:"why"`
	Similar     []string             `json:"similar"`
}

// groups lists a project's groups, last seen first.
func (a *API) groups(w http.ResponseWriter, r *http.Request) error {
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	if err := httpapi.OnlyKnown(r, []string{"level", "environment"}, "status", "from", "to", "q", "limit", "cursor"); err != nil {
		return err
	}
	query, err := ParseQuery(r)
	if err != nil {
		return err
	}
	query.Project = project
	page, err := a.Service.Groups(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, newListBody(r, page))
	return nil
}

// listBody is a page of groups. It is incomplete
// where the search timed out before it was full.
type listBody struct {
	httpapi.List[groupBody]
	Incomplete bool `json:"incomplete,omitempty"`
}

func newListBody(r *http.Request, page postgres.Page) listBody {
	body := listBody{httpapi.List[groupBody]{Items: make([]groupBody, len(page.Groups))}, page.Incomplete}
	for i, g := range page.Groups {
		body.Items[i] = newGroupBody(g)
	}
	if page.Next != nil {
		next := httpapi.EncodeCursor(r, page.Next)
		body.NextCursor = &next
	}
	return body
}

// group returns a group, some occurrences and its reason.
func (a *API) group(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	found, err := a.Service.Group(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	similar := make([]string, len(found.Similar))
	for i, s := range found.Similar {
		similar[i] = s.Group.ID
	}
	httpapi.WriteJSON(w, http.StatusOK, groupDetailBody{newGroupBody(found.Group), newOccurrenceBodies(found.Occurrences), found.Why, similar})
	return nil
}
