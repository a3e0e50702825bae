package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type settingRoutes struct{ settings *groups.Settings }

func settingOperations(a *access, settings *groups.Settings) []openapi.Operation {
	s := settingRoutes{settings}
	noProject := map[int]string{http.StatusNotFound: "There is no such project in the key's organization"}
	return []openapi.Operation{
		{
			Route: "GET /v1/projects/{project}/error-settings", Handle: a.reads(s.get), ID: "getErrorSettings",
			Summary:  "Where the metadata of a project's entries has the release, service, user and host of an error, and when errors are archived",
			Query:    struct{}{},
			Answer:   openapi.Answer{Type: settingsBody{}, Description: "The settings"},
			Problems: noProject,
		},
		{
			Route: "PUT /v1/projects/{project}/error-settings", Handle: a.changes(with(s.set)), ID: "setErrorSettings",
			Summary: "Say where the metadata of a project's entries has the release, service, user and host of an error, and when errors are archived",
			Description: "Paths hold for entries that are accepted 5 seconds later or after that. What is left out is found nowhere, and without " +
				"archive_after_days nothing is archived.",
			Headers: idempotent{}, Query: struct{}{},
			Body:   openapi.Body{Type: setSettingsBody{}},
			Answer: openapi.Answer{Type: settingsBody{}, Description: "The settings"},
			Problems: map[int]string{
				http.StatusNotFound: noProject[http.StatusNotFound], http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
				http.StatusConflict: "version_conflict: somebody else has changed the settings since if_since",
			},
		},
	}
}

type pathsBody struct {
	Release []string `json:"release,omitempty" maxItems:"3" description:"Paths in the metadata of an entry, of which the first one with a text counts: names with dots between, each a member of the object before, or one with dots in its name. Default: release, version, service.version"`
	Service []string `json:"service,omitempty" maxItems:"3" description:"Default: service, service.name"`
	User    []string `json:"user,omitempty" maxItems:"3" description:"Whom the error affected: a text or a number, of which only a hash is kept. Default: user.id, user"`
	Host    []string `json:"host,omitempty" maxItems:"3" description:"Default: host, host.name"`
}

type setSettingsBody struct {
	pathsBody
	ArchiveAfterDays int        `json:"archive_after_days,omitempty" minimum:"0" maximum:"365" description:"Unresolved groups without an error for so many days are archived, until one comes. 0 or left out: never"`
	IfSince          *time.Time `json:"if_since,omitempty" description:"Refuse with version_conflict unless the present settings are those from this time on"`
}

type settingsBody struct {
	pathsBody
	ArchiveAfterDays int        `json:"archive_after_days" minimum:"0" maximum:"365" description:"Unresolved groups without an error for so many days are archived; 0: none is"`
	Since            *time.Time `json:"since" description:"For entries accepted from this time on; null: these are the defaults"`
	Actor            *string    `json:"actor" description:"Id of the member or API key that set them"`
}

func newSettingsBody(s postgres.Setting) settingsBody {
	return settingsBody{pathsBody: pathsBody(s.Paths), ArchiveAfterDays: s.ArchiveDays, Since: httpapi.TimeOrNull(s.Since), Actor: httpapi.OrNull(s.By)}
}

func (s settingRoutes) get(c *call) (any, error) {
	return as(newSettingsBody)(s.settings.Find(c.ctx(), c.who.Organization, c.project))
}

func (s settingRoutes) set(c *call, body setSettingsBody) (any, error) {
	to := postgres.Setting{Paths: grouping.Paths(body.pathsBody), ArchiveDays: body.ArchiveAfterDays}
	return as(newSettingsBody)(s.settings.Set(c.ctx(), c.request, c.project, to, body.IfSince))
}
