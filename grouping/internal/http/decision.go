package http

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/identity"
)

func (a *API) decisionOperations() []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "PATCH /v1/error-groups/{group}", Handle: a.decide, ID: "decideErrorGroup",
			Summary:     "Resolve, ignore, reopen or assign an error group, or add a note",
			Description: "What is left out stays as it is; what is so already makes no decision. A later error of a resolved group is a regression.",
			Headers:     idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: decisionBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group"},
			Problems: refused,
		},
		{
			Route: "PATCH /v1/projects/{project}/error-groups", Handle: a.decideAll, ID: "decideErrorGroups",
			Summary: "Resolve, ignore, reopen or assign all error groups of a search",
			Description: "At most 1,000 groups that this changes, those last seen first; all of them or, where one can't be, none. " +
				"Send it again while left is above 0.",
			Headers: idempotent{}, Query: groupFilters{},
			Body:     openapi.Body{Type: bulkDecisionBody{}},
			Answer:   openapi.Answer{Type: bulkBody{}, Description: "How many groups were changed"},
			Problems: refused,
		},
		{
			Route: "GET /v1/error-groups/{group}/activity", Handle: a.activity, ID: "listErrorGroupActivity",
			Summary:  "What was decided about an error group, the newest first: by whom, or why by itself",
			Query:    httpapi.Page{},
			Answer:   openapi.Answer{Type: httpapi.List[activityBody]{}, Description: "A page of decisions"},
			Problems: map[int]string{http.StatusNotFound: "There is no such group in the key's organization"},
		},
	}
}

// refused are the problems of decisions.
var refused = map[int]string{ // bounded by these
	http.StatusNotFound: "There is no such group in the key's organization",
	http.StatusConflict: "version_conflict: somebody decided about the group meanwhile; version is its present one, and activity what was decided since. " +
		"limit_reached: there are as many decisions about the group as there may be, or as many splits of the project",
	http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
}

type idempotent struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" description:"1 to 255 printable ASCII characters. The same request with the same key within 30 days is answered as it was and has no further effect; another one is refused: idempotency_key_reused"`
}

type untilBody struct {
	At    *time.Time `json:"at,omitempty" description:"This time has come"`
	Count int64      `json:"count,omitempty" minimum:"1" maximum:"1000000000" description:"So many errors have come since"`
	Per   string     `json:"per,omitempty" enum:"minute,hour,day,week" description:"They must come within this span, to a tenth of it"`
}

type bulkDecisionBody struct {
	Status    string     `json:"status,omitempty" enum:"unresolved,resolved,ignored"`
	InRelease string     `json:"in_release,omitempty" maxLength:"200" description:"With resolved: the release from which on it is mended. current is the newest that is known of the group's package, next the one after what each environment runs. Left out: it is mended everywhere"`
	Until     *untilBody `json:"until,omitempty" description:"With ignored: when it is unresolved again, by whatever comes first. Left out: never"`
	Assignee  *string    `json:"assignee,omitempty" maxLength:"100" description:"Id of a member, or a label such as that of a team; empty: nobody"`
	Note      string     `json:"note,omitempty" maxLength:"2000"`
}

type decisionBody struct {
	bulkDecisionBody
	IfVersion *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group is at this version"`
}

// wish reads what a body asks for.
func (b bulkDecisionBody) wish() (wish groups.Wish, err error) {
	wish.Note = b.Note
	if b.Status != "" {
		status, known := grouping.ParseStatus(b.Status)
		if !known {
			return wish, grouping.Invalid{Field: "status", Detail: fmt.Sprintf("The status is %q.", b.Status), Fix: "Use unresolved, resolved or ignored."}
		}
		wish.Status = status
	}
	if b.InRelease != "" {
		wish.ResolveIn(b.InRelease)
		if wish.Status != grouping.Resolved {
			return wish, grouping.Invalid{Field: "in_release", Detail: "Only what is resolved is so in a release.", Fix: `Send status "resolved" with it.`}
		}
	}
	if b.Assignee != nil {
		wish.Assign = &grouping.Assignee{ID: *b.Assignee}
	}
	if b.Until != nil {
		wish.Until, err = b.Until.until()
	}
	return wish, err
}

func (b untilBody) until() (u grouping.Until, err error) {
	if b.At != nil {
		u.At = b.At.UTC().Truncate(time.Microsecond)
	}
	if u.Per, err = spanNamed("until/per", b.Per); err != nil {
		return u, err
	}
	if u.Count = b.Count; u == (grouping.Until{}) {
		return u, grouping.Invalid{Field: "until", Detail: "It names no end.", Fix: "Send at or count, or leave until out."}
	}
	return u, nil
}

// requestOf is a deciding request with an API key,
// which must read its whole organization.
func requestOf(r *http.Request) (request groups.Request, err error) {
	who := identity.FromContext(r.Context())
	if _, alone := who.OnlyProject(); alone {
		return request, httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			fmt.Sprintf(`The access of the API key is %q. Use a key whose access is "full", or change that of this one under API Keys.`, who.Access))
	}
	key, err := httpapi.IdempotencyKey(r)
	return groups.Request{Who: who, By: postgres.Author{ID: who.ID, Request: httpapi.RequestID(r.Context())}, Key: key}, err
}

func (a *API) decide(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	var body decisionBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	id := chi.URLParam(r, "group")
	wish, err := body.wish()
	if err != nil {
		return Refusal(err)
	}
	wish.IfVersion = body.IfVersion
	group, err := a.Service.Decide(r.Context(), request, id, wish)
	return a.answer(w, r, id, group, err)
}

// answer answers a decision about a group.
func (a *API) answer(w http.ResponseWriter, r *http.Request, id string, group postgres.Group, err error) error {
	var conflict grouping.Conflict
	if errors.As(err, &conflict) {
		return a.conflict(r, conflict)
	}
	if err != nil {
		return notFound(Refusal(err), id)
	}
	httpapi.WriteJSON(w, http.StatusOK, newErrorGroupBody(group))
	return nil
}

// problemBody is an error answer of the module.
type problemBody struct {
	httpapi.ProblemBody
	Version  int64          `json:"version,omitempty" description:"version_conflict: that of the group, or of the rules"`
	Activity []activityBody `json:"activity,omitempty" maxItems:"20" description:"version_conflict: what was decided since if_version, the newest first"`
}

// conflict tells the second of two what the first one did.
func (a *API) conflict(r *http.Request, conflict grouping.Conflict) error {
	since, err := a.Service.Activity(r.Context(), identity.FromContext(r.Context()), conflict.Group, conflict.Version+1, maxSince)
	if err != nil {
		return notFound(err, conflict.Group)
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

// maxGroups is how many groups a decision shows.
const maxGroups = 100

// maxSince is how many decisions a conflict shows.
const maxSince = 20

// Refusal is the answer to an error of a decision.
func Refusal(err error) error {
	var invalid grouping.Invalid
	switch {
	case errors.As(err, &invalid):
		pointer := ""
		if invalid.Field != "" {
			pointer = "/" + invalid.Field
		}
		return httpapi.Invalid(pointer, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	case errors.Is(err, idempotency.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.Is(err, groups.ErrSettingsChanged):
		return httpapi.NewProblem(http.StatusConflict, "version_conflict",
			"Somebody else has changed the settings meanwhile. Read them, and send the request again if it still makes sense.")
	case errors.Is(err, postgres.ErrMerging):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict, "Others merge or split these groups at this moment. Send the request again.")
	case errors.Is(err, grouping.ErrFull), errors.Is(err, postgres.ErrManySplits):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", strings.ToUpper(err.Error()[:1])+err.Error()[1:]+".")
	}
	return err
}

type bulkBody struct {
	Changed    int   `json:"changed" maximum:"1000" description:"Groups that this request has changed"`
	Left       int64 `json:"left" description:"Groups that the same request would still change"`
	Incomplete bool  `json:"incomplete,omitempty" description:"true where the search timed out before all groups were looked at: more may be left. Else absent"`
}

func (a *API) decideAll(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	query, err := ParseQuery(r)
	if err != nil {
		return err
	}
	var body bulkDecisionBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	wish, err := body.wish()
	if err != nil {
		return Refusal(err)
	}
	query.Project = project
	bulk, err := a.Service.DecideAll(r.Context(), request, query, wish)
	if err != nil {
		return Refusal(err)
	}
	httpapi.WriteJSON(w, http.StatusOK, bulkBody(bulk))
	return nil
}

type activityBody struct {
	Version     int64         `json:"version" description:"Number of the decision: the version of the group after it"`
	Kind        grouping.Kind `json:"kind" enum:"resolved,ignored,reopened,assigned,noted,merged,unmerged,split,linked,unlinked,unignored,regressed,spiking,quiet"`
	At          time.Time     `json:"at" description:"When it was decided; of what followed by itself, when the error happened or the time was over"`
	Actor       *string       `json:"actor" description:"Id of the member or API key; null: it followed by itself"`
	ActorName   string        `json:"actor_name,omitempty" description:"Of the member"`
	Reason      string        `json:"reason,omitempty" description:"Why it followed by itself"`
	InRelease   string        `json:"in_release,omitempty" description:"Of resolved; next is the one after those that were known"`
	Until       *untilBody    `json:"until,omitempty" description:"Of ignored"`
	Assignee    *string       `json:"assignee,omitempty" description:"Of assigned; empty: nobody"`
	Note        string        `json:"note,omitempty"`
	Link        *linkBody     `json:"link,omitempty" description:"Of linked and unlinked"`
	Into        string        `json:"into,omitempty"   description:"Of merged: the group that it was merged into; of split: the one that was split off"`
	From        string        `json:"from,omitempty"   description:"Of unmerged: the group that it was taken out of"`
	Groups      []string      `json:"groups,omitempty" maxItems:"100" description:"Of merged, unmerged and split: groups that were merged into this one, taken out of it or split off from one of its members, the first 100"`
	Release     string        `json:"release,omitempty" description:"Of the error that it followed from"`
	Environment string        `json:"environment,omitempty" description:"Of that error"`
}

func newActivityBody(a postgres.Activity) activityBody {
	body := activityBody{
		Version: a.Version, Kind: a.Kind, At: a.At.UTC(), ActorName: a.By.Name, Reason: a.Reason, InRelease: inRelease(a.Resolution),
		Until: newUntilBody(a.Until), Note: a.Note, Into: a.Into, From: a.From,
		Groups: a.Groups[:min(len(a.Groups), maxGroups)], Release: a.Release, Environment: a.Environment,
	}
	if a.By.ID != "" {
		body.Actor = &a.By.ID
	}
	if !a.Link.IsZero() {
		link := showLink(a.Link)
		body.Link = &link
	}
	if a.Kind == grouping.WasAssigned {
		body.Assignee = &a.Assignee.ID
	}
	return body
}

func inRelease(r grouping.Resolution) string {
	if r.Next {
		return "next"
	}
	return r.Release
}

func newUntilBody(u grouping.Until) *untilBody {
	if u == (grouping.Until{}) {
		return nil
	}
	body := &untilBody{Count: u.Count}
	if !u.At.IsZero() {
		at := u.At.UTC()
		body.At = &at
	}
	body.Per = nameOf(u.Per)
	return body
}

// activity lists the decisions about a group, the newest first.
func (a *API) activity(w http.ResponseWriter, r *http.Request) error {
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	before := int64(grouping.MaxDecisions) * 3 // more than there are
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(r, page.Cursor, &before); err != nil {
			return err
		}
	}
	id := chi.URLParam(r, "group")
	found, err := a.Service.Activity(r.Context(), identity.FromContext(r.Context()), id, before, page.Limit+1)
	if err != nil {
		return notFound(err, id)
	}
	httpapi.WriteList(w, r, found, page.Limit, newActivityBody, func(last postgres.Activity) int64 { return last.Version })
	return nil
}
