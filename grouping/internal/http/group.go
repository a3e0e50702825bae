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

type errorGroupBody struct {
	ID           string          `json:"id" maxLength:"64"`
	Project      string          `json:"project" maxLength:"64"`
	Title        string          `json:"title" description:"Type and message of the first occurrence, on one line; its first 200 bytes"`
	Type         string          `json:"type" description:"Type of the error as sent, its first 200 bytes; empty when none was"`
	Culprit      string          `json:"culprit" description:"The innermost frame of the sender's own code, its first 200 bytes; empty without a usable stack trace"`
	Status       grouping.Status `json:"status" enum:"unresolved,resolved,ignored"`
	Count        int64           `json:"count" minimum:"1" description:"How many accepted entries carried this error; exact"`
	FirstSeen    time.Time       `json:"first_seen" description:"Earliest timestamp of an entry of the group"`
	LastSeen     time.Time       `json:"last_seen" description:"Latest timestamp of an entry of the group"`
	Levels       []string        `json:"levels" enum:"debug,info,warn,error,fatal"`
	Environments []string        `json:"environments"`
}

func newErrorGroupBody(g postgres.Group) errorGroupBody {
	return errorGroupBody{
		ID: g.ID, Project: g.Project, Title: g.Title, Type: g.Type, Culprit: g.Culprit, Status: g.Status, Count: g.Count,
		FirstSeen: g.FirstSeen.UTC(), LastSeen: g.LastSeen.UTC(), Levels: g.Severities.Names(), Environments: g.Environments,
	}
}

type errorGroupDetailBody struct {
	errorGroupBody
	Occurrences []occurrenceBody     `json:"occurrences" maxItems:"25" description:"Samples: the first 5 and the newest 20 as they came, by time, the newest first; of many at once only some"`
	Why         postgres.Explanation `json:"why"`
	Similar     []string             `json:"similar" description:"Groups of the project that may be about the same thing"`
}

// groupsQuery are the filters of a list.
type groupsQuery struct {
	Status       string    `query:"status" enum:"unresolved,resolved,ignored" description:"Groups with this status"`
	From         time.Time `query:"from" description:"Groups last seen at or after this time, by the entries' timestamps"`
	To           time.Time `query:"to" description:"Groups first seen before this time, by the entries' timestamps"`
	Levels       []string  `query:"level" enum:"debug,info,warn,error,fatal" description:"Groups with entries of one of these levels"`
	Environments []string  `query:"environment" description:"Groups with entries of one of these environments"`
	Words        string    `query:"q" maxLength:"256" description:"Words that all occur in title, type or culprit, whatever their case"`
	httpapi.Page
}

// groups lists a project's groups, last seen first.
func (a *API) groups(w http.ResponseWriter, r *http.Request) error {
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
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
	httpapi.WriteJSON(w, http.StatusOK, newErrorGroupListBody(r, page))
	return nil
}

// errorGroupListBody is a page of groups. It may
// end before its limit: its text is bounded.
type errorGroupListBody struct {
	httpapi.List[errorGroupBody]
	Incomplete bool `json:"incomplete,omitempty" description:"true where the search timed out before the page was full: these are the groups found so far, none perhaps, and next_cursor goes on from there. Else absent"`
}

func newErrorGroupListBody(r *http.Request, page postgres.Page) errorGroupListBody {
	body := errorGroupListBody{httpapi.List[errorGroupBody]{Items: make([]errorGroupBody, len(page.Groups))}, page.Incomplete}
	for i, g := range page.Groups {
		body.Items[i] = newErrorGroupBody(g)
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
	found, err := a.Service.Group(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	similar := make([]string, len(found.Similar))
	for i, s := range found.Similar {
		similar[i] = s.Group.ID
	}
	httpapi.WriteJSON(w, http.StatusOK, errorGroupDetailBody{newErrorGroupBody(found.Group), newOccurrenceBodies(found.Occurrences), found.Why, similar})
	return nil
}
