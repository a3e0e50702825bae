package http

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

func sharers() string { return strings.Join(identity.RolesThatShareSearches(), "s, ") + "s" }

func alerting(s *Saved) []openapi.Operation {
	conflict := map[int]string{http.StatusConflict: "conflict: it was changed since that version; limit_reached"}
	return []openapi.Operation{
		{
			Route: "GET /v1/searches/{search}/alert", Handle: s.alert, ID: "getAlert", Summary: "The alert of a saved search", Answer: openapi.Answer{Type: alertBody{}},
		},
		{
			Route: "PUT /v1/searches/{search}/alert", Handle: written(s.setAlert), ID: "setAlert", Summary: "Set an alert on a saved search, or change it",
			Headers: repeatableHeaders{}, Body: openapi.Body{Type: newAlertBody{}}, Answer: openapi.Answer{Type: alertBody{}}, Problems: conflict,
		},
		{
			Route: "DELETE /v1/searches/{search}/alert", Handle: written(s.removeAlert), ID: "deleteAlert",
			Summary: "Delete the alert of a saved search. Nothing is told of it any more",
			Query:   versionQuery{}, Headers: repeatableHeaders{}, Problems: conflict,
			Answer: openapi.Answer{Type: searchBody{}, Description: "The search, which stays"},
		},
		{
			Route: "POST /v1/searches/{search}/alert/mute", Handle: written(s.mute), ID: "muteAlert",
			Summary: "Tell nothing of an alert until a time. It is evaluated meanwhile; what is true then is told then",
			Headers: repeatableHeaders{}, Body: openapi.Body{Type: muteBody{}}, Answer: openapi.Answer{Type: alertBody{}},
		},
		{
			Route: "POST /v1/searches/{search}/alert/test", Handle: written(s.test), ID: "testAlert",
			Summary: "Send to all who are told of the alert that it fires, marked as a test. Once a minute",
			Headers: repeatableHeaders{}, Answer: openapi.Answer{Status: http.StatusAccepted, Type: alertBody{}},
			Problems: map[int]string{http.StatusConflict: "conflict: it was tested within the last minute"},
		},
		{
			Route: "GET /v1/searches/{search}/alert/evaluations", Handle: s.evaluations, ID: "listEvaluations",
			Summary: "The newest evaluations of an alert, at most 120",
			Query:   evaluationsQuery{}, Answer: openapi.Answer{Type: evaluationsBody{}, Description: "The newest first"},
		},
	}
}

// Words of an alert's condition.
const (
	moreThan  = "more_than"
	fewerThan = "fewer_than"
)

type newAlertBody struct {
	Every     int64    `json:"every_seconds" required:"true" minimum:"60" maximum:"86400" description:"How often it is evaluated"`
	Window    int64    `json:"window_seconds" required:"true" minimum:"60" maximum:"604800" description:"The time up to then whose entries are counted"`
	Condition string   `json:"condition" required:"true" enum:"more_than,fewer_than" description:"It fires while the window has more, or fewer, entries than threshold. fewer_than 1: nothing came"`
	Threshold int64    `json:"threshold" required:"true" minimum:"0"`
	Times     int      `json:"times" minimum:"1" maximum:"10" default:"1" description:"How many evaluations in a row it takes to fire"`
	Quiet     int64    `json:"quiet_seconds" minimum:"0" maximum:"604800" default:"0" description:"For how long after it was told that it fires that is not told again"`
	Examples  int      `json:"examples" minimum:"0" maximum:"3" default:"0" description:"How many messages of entries are sent along: they go wherever the webhooks and mails go"`
	Roles     []string `json:"mail_roles" enum:"owner,admin,developer,viewer" description:"Members of these roles get mail"`
	Members   []string `json:"mail_members" maxItems:"20" description:"Ids of members who get mail as well"`
	Version   int64    `json:"version" minimum:"0" description:"That was read; 0 or absent: there is no alert yet"`
}

type alertBody struct {
	Search      string     `json:"search" description:"The id of the saved search"`
	Every       int64      `json:"every_seconds"`
	Window      int64      `json:"window_seconds"`
	Condition   string     `json:"condition" enum:"more_than,fewer_than"`
	Threshold   int64      `json:"threshold"`
	Times       int        `json:"times"`
	Quiet       int64      `json:"quiet_seconds"`
	Examples    int        `json:"examples"`
	Roles       []string   `json:"mail_roles"`
	Members     []string   `json:"mail_members"`
	State       string     `json:"state" enum:"ok,firing,unevaluated" description:"unevaluated: it could not be evaluated for 15 minutes, or for three evaluations where that is longer"`
	Since       time.Time  `json:"since"`
	Told        string     `json:"told" enum:"ok,firing,unevaluated" description:"What receivers have been told last"`
	MutedUntil  *time.Time `json:"muted_until" description:"null: it is not muted"`
	EvaluatedAt *time.Time `json:"evaluated_at" description:"null: not yet"`
	NextAt      time.Time  `json:"next_at"`
	Version     int64      `json:"version"`
	UpdatedBy   string     `json:"updated_by"`
	UpdatedAt   time.Time  `json:"updated_at"`
}

func showAlert(a *postgres.Alert) alertBody {
	shown := alertBody{
		Search: a.Search.ID, Every: seconds(a.Every), Window: seconds(a.Window), Condition: moreThan, Threshold: a.Threshold, Times: a.Times, Quiet: seconds(a.Quiet),
		Examples: a.Examples, Roles: append([]string{}, a.Roles...), Members: append([]string{}, a.Members...), State: string(a.State), Since: a.Since.UTC(),
		Told: string(a.Told), MutedUntil: httpapi.TimeOrNull(a.MutedUntil), EvaluatedAt: httpapi.TimeOrNull(a.EvaluatedAt),
		NextAt: a.NextAt.UTC(), Version: a.Version,
		UpdatedBy: a.UpdatedBy, UpdatedAt: a.UpdatedAt.UTC(),
	}
	if a.Fewer {
		shown.Condition = fewerThan
	}
	return shown
}

func seconds(of time.Duration) int64 { return int64(of / time.Second) }

func (b *newAlertBody) rule() (rule ingest.AlertRule, err error) {
	if b.Condition != moreThan && b.Condition != fewerThan {
		return rule, httpapi.Invalid("/condition", httpapi.CodeInvalidRequest, "The condition is none of an alert.", "Use more_than or fewer_than.")
	}
	span := func(seconds int64) time.Duration { return time.Duration(min(max(seconds, -1), 1<<30)) * time.Second }
	return ingest.AlertRule{
		Every: span(b.Every), Window: span(b.Window), Fewer: b.Condition == fewerThan, Threshold: b.Threshold, Times: b.Times, Quiet: span(b.Quiet),
		Examples: b.Examples, Roles: b.Roles, Members: b.Members,
	}, nil
}

// answerAlert answers with an alert, or with what kept it from being so.
func answerAlert(w http.ResponseWriter, r *http.Request, status int, a *postgres.Alert, err error) error {
	if err != nil {
		return SavedProblem(err, chi.URLParam(r, "search"))
	}
	httpapi.WriteJSON(w, status, showAlert(a))
	return nil
}

func (s *Saved) alert(w http.ResponseWriter, r *http.Request) error {
	found, err := s.Service.Alert(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "search"))
	return answerAlert(w, r, http.StatusOK, &found, err)
}

func (s *Saved) setAlert(w http.ResponseWriter, r *http.Request) error {
	body := newAlertBody{Times: 1}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	rule, err := body.rule()
	if err != nil {
		return err
	}
	set, err := s.Service.SetAlert(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "search"), rule, body.Version)
	return answerAlert(w, r, http.StatusOK, &set, err)
}

func (s *Saved) removeAlert(w http.ResponseWriter, r *http.Request) error {
	version, err := version(r)
	if err != nil {
		return err
	}
	id, who := chi.URLParam(r, "search"), identity.FromContext(r.Context())
	if err := s.Service.DeleteAlert(r.Context(), who, id, version); err != nil {
		return SavedProblem(err, id)
	}
	return s.get(w, r)
}

type muteBody struct {
	Until *time.Time `json:"until" required:"true" nullable:"true" description:"null: it is told from now on"`
}

func (s *Saved) mute(w http.ResponseWriter, r *http.Request) error {
	var body muteBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	var until time.Time
	if body.Until != nil {
		until = *body.Until
	}
	muted, err := s.Service.Mute(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "search"), until)
	return answerAlert(w, r, http.StatusOK, &muted, err)
}

func (s *Saved) test(w http.ResponseWriter, r *http.Request) error {
	id, who := chi.URLParam(r, "search"), identity.FromContext(r.Context())
	if err := s.Service.Test(r.Context(), who, id); err != nil {
		return SavedProblem(err, id)
	}
	found, err := s.Service.Alert(r.Context(), who, id)
	return answerAlert(w, r, http.StatusAccepted, &found, err)
}

type evaluationsQuery struct {
	Changes bool `query:"changes" description:"true: only those that changed the state, or were told; at most 60, which go further back"`
}

type evaluationsBody struct {
	Items []evaluationBody `json:"items"`
	httpapi.OnePage
}

type evaluationBody struct {
	At         time.Time `json:"at" description:"The end of the window"`
	Entries    int64     `json:"entries"`
	Incomplete bool      `json:"incomplete,omitempty" const:"true" description:"There may be more entries"`
	Judgement  string    `json:"judgement" enum:"met,not_met,unknown"`
	State      string    `json:"state" enum:"ok,firing,unevaluated" description:"After it"`
	Told       bool      `json:"told" description:"Receivers were told the state"`
	Held       string    `json:"held,omitempty" enum:"muted,quiet" description:"Why they were not"`
	Reason     string    `json:"reason,omitempty" description:"Why not all entries were counted"`
}

func (s *Saved) evaluations(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "search")
	found, changes, err := s.Service.History(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return SavedProblem(err, id)
	}
	switch text := r.URL.Query().Get("changes"); text {
	case "true":
		found = changes
	case "", "false":
	default:
		return httpapi.Invalid("?changes", httpapi.CodeInvalidRequest, "changes is neither true nor false.", "Use true, or leave it out.")
	}
	body := evaluationsBody{Items: []evaluationBody{}}
	for _, e := range found {
		body.Items = append(body.Items, evaluationBody{e.At.UTC(), e.Entries, e.Part, string(e.Judgement), string(e.State), e.Told, e.Held, e.Reason})
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}
