package http

import (
	"context"
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ruletext"
	"github.com/weirlog/weir/shared/ruletext/routes"
)

func ruleOperations(a *access, rules *groups.Rules) []openapi.Operation {
	through := func(way func(handler) func(http.ResponseWriter, *http.Request) error, headers any) routes.Way {
		return routes.Way{Headers: headers, Wrap: func(handle routes.Handler) routes.Handler {
			return way(func(c *call) (any, error) { return nil, handle(c.w, c.r) })
		}}
	}
	set := func(r *http.Request, wish ruletext.Wish) (v ruletext.Version, err error) {
		key, err := httpapi.IdempotencyKey(r)
		if err != nil {
			return v, err
		}
		return rules.Set(r.Context(), a.requestOf(r, identity.FromContext(r.Context()), key), wish)
	}
	preview := func(ctx context.Context, who identity.Principal, project, text string) (any, error) {
		return as(newPreviewBody)(rules.Preview(ctx, who, project, text))
	}
	api := routes.API[ruleVersionBody, rulesBody]{
		Rules: routes.Rules{Versions: rules.Versions, Set: set, Preview: preview},
		Path:  "/v1/projects/{project}/error-rules", Noun: "ErrorRules", Purpose: "by which errors of a project are grouped",
		Holds: "They hold for errors that are accepted two seconds later or after that; groups keep what they have.",
		Reads: through(a.reads, nil), Tries: through(a.repeats, repeatable{}), Changes: through(a.changes, idempotent{}), Body: setRulesBody{},
		Trial: openapi.Operation{
			Summary: "What rules would do to errors like those of the last 7 days",
			Description: "Rules are tried on the newest 10 samples of each group that was seen in the last 7 days, up to 2,000 groups and 4 seconds, " +
				"those last seen first. Nothing is changed. Of metadata, samples have only what rules asked for when they came.",
			Body: openapi.Body{Type: triedRulesBody{}}, Answer: openapi.Answer{Type: previewBody{}, Description: "What would change"},
		},
		Show: newRuleVersionBody, ShowWhole: func(v ruletext.Version) rulesBody { return rulesBody{newRuleVersionBody(v), v.Text} },
	}
	return api.Operations()
}

type triedRulesBody struct {
	Rules string `json:"rules" maxLength:"16384" description:"One a line, at most 50: own, library or ignore with conditions about frames; same \"NAME\" with conditions; group by PARTS where conditions; scrub PATTERN. Lines that begin with # are comments"`
}

type setRulesBody struct {
	triedRulesBody
	routes.ChangeBody
}

type ruleVersionBody struct {
	Version int64      `json:"version" description:"0: nobody has set any"`
	Since   *time.Time `json:"since" description:"For errors accepted from this time on; null: nobody has set any"`
	routes.AuthorBody
}

type rulesBody struct {
	ruleVersionBody
	Rules string `json:"rules"`
}

func newRuleVersionBody(v ruletext.Version) ruleVersionBody {
	return ruleVersionBody{v.Number, httpapi.TimeOrNull(v.At), routes.NewAuthorBody(v)}
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
	return previewSideBody{
		httpapi.OrNull(s.ID), s.Title, append([]string{}, s.Values...), httpapi.OrNull(s.Rule), s.Count, s.Samples, append([]string{}, s.Entries...),
	}
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
