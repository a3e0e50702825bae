package http

import (
	"math"
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type ruleRoutes struct{ rules *groups.Rules }

func ruleOperations(a *access, rules *groups.Rules) []openapi.Operation {
	u := ruleRoutes{rules}
	const path = "/v1/projects/{project}/error-rules"
	missing := map[int]string{http.StatusNotFound: "There is no such project in the key's organization, or no such version"}
	changed := map[int]string{
		http.StatusNotFound:  missing[http.StatusNotFound],
		http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
		http.StatusConflict:  "version_conflict: somebody changed the rules meanwhile; version is their present one",
	}
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.reads(u.newest), ID: "getErrorRules",
			Summary: "The rules by which errors of a project are grouped",
			Query:   struct{}{}, Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: missing,
		},
		{
			Route: "PUT " + path, Handle: a.changes(with(u.set)), ID: "setErrorRules",
			Summary: "Set the rules by which errors of a project are grouped",
			Description: "They hold for errors that are accepted two seconds later or after that; groups keep what they have. The same rules again change nothing. " +
				"A fault names its line and character.",
			Headers: idempotent{}, Query: struct{}{}, Body: openapi.Body{Type: setRulesBody{}},
			Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: changed,
		},
		{
			Route: "POST " + path + "/preview", Handle: a.repeats(with(u.preview)), ID: "previewErrorRules",
			Summary: "What rules would do to errors like those of the last 7 days",
			Description: "Rules are tried on the newest 10 samples of each group that was seen in the last 7 days, up to 2,000 groups and 4 seconds, " +
				"those last seen first. Nothing is changed. Of metadata, samples have only what rules asked for when they came.",
			Query: struct{}{}, Headers: repeatable{}, Body: openapi.Body{Type: triedRulesBody{}},
			Answer: openapi.Answer{Type: previewBody{}, Description: "What would change"}, Problems: missing,
		},
		{
			Route: "GET " + path + "/versions", Handle: a.reads(u.versions), ID: "listErrorRulesVersions",
			Summary: "The last 100 versions of a project's rules, the newest first: who set them, when and why",
			Query:   httpapi.Page{}, Answer: openapi.Answer{Type: httpapi.List[ruleVersionBody]{}, Description: "A page of versions"}, Problems: missing,
		},
		{
			Route: "GET " + path + "/versions/{version}", Handle: a.reads(u.version), ID: "getErrorRulesVersion",
			Summary: "A version of a project's rules",
			Query:   struct{}{}, Answer: openapi.Answer{Type: rulesBody{}, Description: "The version"}, Problems: missing,
		},
		{
			Route: "POST " + path + "/versions/{version}/restore", Handle: a.changes(with(u.restore)), ID: "restoreErrorRules",
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
	body := ruleVersionBody{Version: r.Version, Since: timeOrNull(r.Since), Actor: orNull(r.By.ID), ActorName: orNull(r.By.Name), Note: orNull(r.Note)}
	if r.Restored > 0 {
		body.Restored = &r.Restored
	}
	return body
}

func newRulesBody(r postgres.Rules) rulesBody { return rulesBody{newRuleVersionBody(r), r.Text} }

func (u ruleRoutes) newest(c *call) (any, error) {
	return as(newRulesBody)(u.rules.Newest(c.ctx(), c.who.Organization, c.project))
}

func (u ruleRoutes) version(c *call) (any, error) {
	version, err := groups.ParseRulesVersion(c.param("version"))
	if err != nil {
		return nil, err
	}
	return as(newRulesBody)(u.rules.Version(c.ctx(), c.who.Organization, c.project, version))
}

func (u ruleRoutes) versions(c *call) (any, error) {
	before := int64(math.MaxInt64)
	limit, err := c.page(&before)
	if err != nil {
		return nil, err
	}
	found, err := u.rules.Versions(c.ctx(), c.who.Organization, c.project, before, limit+1)
	if err != nil {
		return nil, err
	}
	httpapi.WriteList(c.w, c.r, found, limit, newRuleVersionBody, func(last postgres.Rules) int64 { return last.Version })
	return nil, nil
}

func (u ruleRoutes) set(c *call, body setRulesBody) (any, error) {
	change := groups.RulesChange{Text: body.Rules, Note: body.Note, IfVersion: body.IfVersion}
	return as(newRulesBody)(u.rules.Set(c.ctx(), c.request, c.project, change))
}

func (u ruleRoutes) restore(c *call, body ruleChangeBody) (any, error) {
	version, err := groups.ParseRulesVersion(c.param("version"))
	if err != nil {
		return nil, err
	}
	change := groups.RulesChange{Restore: version, Note: body.Note, IfVersion: body.IfVersion}
	return as(newRulesBody)(u.rules.Set(c.ctx(), c.request, c.project, change))
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

func newPreviewSplitBody(change grouping.PreviewChange) previewSplitBody {
	return previewSplitBody{newPreviewSideBody(change.From[0]), itemsOf(change.Into, newPreviewSideBody)}
}

func newPreviewJoinBody(change grouping.PreviewChange) previewJoinBody {
	return previewJoinBody{newPreviewSideBody(change.Into[0]), itemsOf(change.From, newPreviewSideBody)}
}

func newPreviewBody(p groups.RulesPreview) previewBody {
	return previewBody{
		Since: p.Since, Groups: p.Groups, Samples: p.Samples, Unknown: p.Unknown, Incomplete: p.Incomplete,
		Joins: itemsOf(p.Joins, newPreviewJoinBody), Splits: itemsOf(p.Splits, newPreviewSplitBody), Moves: itemsOf(p.Moves, newPreviewSplitBody),
		MoreJoins: p.MoreJoins, MoreSplits: p.MoreSplits, MoreMoves: p.MoreMoves,
	}
}

func (u ruleRoutes) preview(c *call, body triedRulesBody) (any, error) {
	return as(newPreviewBody)(u.rules.Preview(c.ctx(), c.who.Organization, c.project, body.Rules))
}
