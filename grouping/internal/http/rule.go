package http

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

func (a *API) ruleOperations() []openapi.Operation {
	const path = "/v1/projects/{project}/error-rules"
	missing := map[int]string{http.StatusNotFound: "There is no such project in the key's organization, or no such version"}
	changed := map[int]string{
		http.StatusNotFound:  missing[http.StatusNotFound],
		http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
		http.StatusConflict:  "version_conflict: somebody changed the rules meanwhile; version is their present one",
	}
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.rules, ID: "getErrorRules",
			Summary: "The rules by which errors of a project are grouped",
			Query:   struct{}{}, Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: missing,
		},
		{
			Route: "PUT " + path, Handle: a.setRules, ID: "setErrorRules",
			Summary: "Set the rules by which errors of a project are grouped",
			Description: "They hold for errors that are accepted two seconds later or after that; groups keep what they have. The same rules again change nothing. " +
				"A fault names its line and character.",
			Headers: idempotent{}, Query: struct{}{}, Body: openapi.Body{Type: setRulesBody{}},
			Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: changed,
		},
		{
			Route: "POST " + path + "/preview", Handle: a.previewRules, ID: "previewErrorRules",
			Summary: "What rules would do to errors like those of the last 7 days",
			Description: "Rules are tried on the newest 10 samples of each group that was seen in the last 7 days, up to 2,000 groups and 4 seconds, " +
				"those last seen first. Nothing is changed. Of metadata, samples have only what rules asked for when they came.",
			Query: struct{}{}, Headers: repeatable{}, Body: openapi.Body{Type: triedRulesBody{}},
			Answer: openapi.Answer{Type: previewBody{}, Description: "What would change"}, Problems: missing,
		},
		{
			Route: "GET " + path + "/versions", Handle: a.ruleVersions, ID: "listErrorRulesVersions",
			Summary: "The last 100 versions of a project's rules, the newest first: who set them, when and why",
			Query:   httpapi.Page{}, Answer: openapi.Answer{Type: httpapi.List[ruleVersionBody]{}, Description: "A page of versions"}, Problems: missing,
		},
		{
			Route: "GET " + path + "/versions/{version}", Handle: a.ruleVersion, ID: "getErrorRulesVersion",
			Summary: "A version of a project's rules",
			Query:   struct{}{}, Answer: openapi.Answer{Type: rulesBody{}, Description: "The version"}, Problems: missing,
		},
		{
			Route: "POST " + path + "/versions/{version}/restore", Handle: a.restoreRules, ID: "restoreErrorRules",
			Summary: "Set the rules of a project as they were in an earlier version. That makes a new version",
			Headers: idempotent{}, Query: struct{}{}, Body: openapi.Body{Type: ruleChangeBody{}},
			Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: changed,
		},
	}
}

type triedRulesBody struct {
	Rules string `json:"rules" maxLength:"16384" description:"One a line, at most 50: own, library or ignore with conditions about frames; same \"NAME\" with conditions; group by PARTS where conditions; scrub PATTERN. Lines that begin with # are comments"`
}

type ruleChangeBody struct {
	Note      string `json:"note,omitempty" maxLength:"200" description:"Why, on one line"`
	IfVersion *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the rules are at this version"`
}

type setRulesBody struct {
	triedRulesBody
	ruleChangeBody
}

type ruleVersionBody struct {
	Version   int64      `json:"version" description:"0: nobody has set any"`
	Since     *time.Time `json:"since" description:"For errors accepted from this time on; null: nobody has set any"`
	Actor     *string    `json:"actor" description:"Id of the member or API key that set them"`
	ActorName *string    `json:"actor_name" description:"Of the member, where it was known; else null"`
	Note      *string    `json:"note"`
	Restored  *int64     `json:"restored" description:"The version whose rules they are, if they were restored"`
}

type rulesBody struct {
	ruleVersionBody
	Rules string `json:"rules"`
}

func newRuleVersionBody(r postgres.Rules) ruleVersionBody {
	body := ruleVersionBody{Version: r.Version, Actor: orNull(r.By.ID), ActorName: orNull(r.By.Name), Note: orNull(r.Note)}
	if since := r.Since.UTC(); r.Version > 0 {
		body.Since = &since
	}
	if r.Restored > 0 {
		body.Restored = &r.Restored
	}
	return body
}

func newRulesBody(r postgres.Rules) rulesBody { return rulesBody{newRuleVersionBody(r), r.Text} }

// ofProject runs fn for a project that the caller may read, and answers with what it returns.
func ofProject[T any](a *API, w http.ResponseWriter, r *http.Request, fn func(organization, project string) (T, error)) error {
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	body, err := fn(identity.FromContext(r.Context()).Organization, project)
	if err != nil {
		return RulesProblem(err, chi.URLParam(r, "version"))
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}

// RulesProblem is what is answered where rules are refused.
func RulesProblem(err error, version string) error {
	var conflict groups.RulesConflict
	switch {
	case errors.As(err, &conflict):
		return httpapi.NewProblem(http.StatusConflict, "version_conflict",
			conflict.Error()+" Read them, and send the request again with the new version if it still makes sense.").With("version", conflict.Rules.Version)
	case errors.Is(err, postgres.ErrNoRules):
		return httpapi.NotFound("version of rules, or it is no longer kept:", version)
	}
	return Refusal(err)
}

func (a *API) rules(w http.ResponseWriter, r *http.Request) error {
	return ofProject(a, w, r, func(organization, project string) (rulesBody, error) {
		found, err := a.Service.Rules(r.Context(), organization, project)
		return newRulesBody(found), err
	})
}

// VersionOf reads the number of a version; of what is none it is 0, which nobody has.
func VersionOf(text string) int64 {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 {
		return 0
	}
	return version
}

func (a *API) ruleVersion(w http.ResponseWriter, r *http.Request) error {
	return ofProject(a, w, r, func(organization, project string) (rulesBody, error) {
		found, err := a.Service.RulesVersion(r.Context(), organization, project, VersionOf(chi.URLParam(r, "version")))
		return newRulesBody(found), err
	})
}

func (a *API) ruleVersions(w http.ResponseWriter, r *http.Request) error {
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	before := int64(math.MaxInt64)
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(r, page.Cursor, &before); err != nil {
			return err
		}
	}
	found, err := a.Service.RulesVersions(r.Context(), identity.FromContext(r.Context()).Organization, project, before, page.Limit+1)
	if err != nil {
		return err
	}
	httpapi.WriteList(w, r, found, page.Limit, newRuleVersionBody, func(last postgres.Rules) int64 { return last.Version })
	return nil
}

// changeRules reads a body and sets the rules as it says.
func changeRules[B any](a *API, w http.ResponseWriter, r *http.Request, read func(body B) (groups.RulesChange, error)) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	return ofProject(a, w, r, func(_, project string) (made rulesBody, err error) {
		var body B
		if err := httpapi.ReadJSON(w, r, &body); err != nil {
			return made, err
		}
		change, err := read(body)
		if err != nil {
			return made, err
		}
		set, err := a.Service.SetRules(r.Context(), request, project, change)
		return newRulesBody(set), err
	})
}

func (a *API) setRules(w http.ResponseWriter, r *http.Request) error {
	return changeRules(a, w, r, func(body setRulesBody) (groups.RulesChange, error) {
		return groups.RulesChange{Text: body.Rules, Note: body.Note, IfVersion: body.IfVersion}, nil
	})
}

func (a *API) restoreRules(w http.ResponseWriter, r *http.Request) error {
	return changeRules(a, w, r, func(body ruleChangeBody) (groups.RulesChange, error) {
		version := VersionOf(chi.URLParam(r, "version"))
		if version == 0 {
			return groups.RulesChange{}, postgres.ErrNoRules
		}
		return groups.RulesChange{Restore: version, Note: body.Note, IfVersion: body.IfVersion}, nil
	})
}

type previewBody struct {
	Since      time.Time `json:"since" description:"Groups were looked at that were seen since then"`
	Groups     int64     `json:"groups" description:"How many of them"`
	Samples    int64     `json:"samples" description:"On how many of their samples the rules were tried"`
	Unknown    int64     `json:"unknown_samples" description:"Other samples, which lack metadata that the rules ask for: what would become of such errors is not known"`
	Incomplete bool      `json:"incomplete,omitempty" description:"true where there are more groups than were looked at. Else absent"`

	Joins  []previewJoinBody  `json:"joins" maxItems:"50" description:"Groups whose errors would be in one from then on, the most frequent first"`
	Splits []previewSplitBody `json:"splits" maxItems:"50" description:"Groups whose errors would be in several"`
	Moves  []previewSplitBody `json:"moves" maxItems:"50" description:"Groups whose errors would be in a new one, which begins at zero"`

	MoreJoins  int `json:"more_joins" description:"Joins that are not shown"`
	MoreSplits int `json:"more_splits"`
	MoreMoves  int `json:"more_moves"`
}

type previewJoinBody struct {
	Into   previewSideBody   `json:"into"`
	Groups []previewSideBody `json:"groups" maxItems:"20" description:"Of now; at most 20"`
}

type previewSplitBody struct {
	Group previewSideBody   `json:"group"`
	Into  []previewSideBody `json:"into" maxItems:"20" description:"At most 20"`
}

type previewSideBody struct {
	ID      *string  `json:"id" maxLength:"64" description:"null: a new group"`
	Title   string   `json:"title"`
	Values  []string `json:"values" description:"What tells a new group from others: the place in the code, or values that a rule groups by"`
	Rule    *string  `json:"rule" description:"The rule that makes a group; null: none does"`
	Count   int64    `json:"count" description:"Errors of a group of now, so far; else 0"`
	Samples int64    `json:"samples" description:"How many of the samples would be there"`
	Entries []string `json:"entries" maxItems:"3" description:"Ids of log entries that are examples"`
}

func newPreviewSideBody(s grouping.PreviewSide) previewSideBody {
	return previewSideBody{orNull(s.ID), s.Title, append([]string{}, s.Values...), orNull(s.Rule), s.Count, s.Samples, append([]string{}, s.Entries...)}
}

func newPreviewSideBodies(sides []grouping.PreviewSide) []previewSideBody {
	bodies := make([]previewSideBody, len(sides))
	for i, side := range sides {
		bodies[i] = newPreviewSideBody(side)
	}
	return bodies
}

func newPreviewSplitBodies(changes []grouping.PreviewChange) []previewSplitBody {
	bodies := make([]previewSplitBody, len(changes))
	for i, change := range changes {
		bodies[i] = previewSplitBody{newPreviewSideBody(change.From[0]), newPreviewSideBodies(change.Into)}
	}
	return bodies
}

func newPreviewBody(p groups.RulesPreview) previewBody {
	body := previewBody{
		Since: p.Since, Groups: p.Groups, Samples: p.Samples, Unknown: p.Unknown, Incomplete: p.Incomplete,
		Joins: make([]previewJoinBody, len(p.Joins)), Splits: newPreviewSplitBodies(p.Splits), Moves: newPreviewSplitBodies(p.Moves),
		MoreJoins: p.MoreJoins, MoreSplits: p.MoreSplits, MoreMoves: p.MoreMoves,
	}
	for i, change := range p.Joins {
		body.Joins[i] = previewJoinBody{newPreviewSideBody(change.Into[0]), newPreviewSideBodies(change.From)}
	}
	return body
}

func (a *API) previewRules(w http.ResponseWriter, r *http.Request) error {
	if _, err := httpapi.IdempotencyKey(r); err != nil {
		return err
	}
	return ofProject(a, w, r, func(organization, project string) (made previewBody, err error) {
		var body triedRulesBody
		if err := httpapi.ReadJSON(w, r, &body); err != nil {
			return made, err
		}
		found, err := a.Service.PreviewRules(r.Context(), organization, project, body.Rules)
		if err != nil {
			return made, fmt.Errorf("cannot try rules: %w", err)
		}
		return newPreviewBody(found), nil
	})
}
