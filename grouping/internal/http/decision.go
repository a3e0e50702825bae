package http

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type decisionRoutes struct{ decisions *groups.Decisions }

func decisionOperations(a *access, decisions *groups.Decisions) []openapi.Operation {
	d := decisionRoutes{decisions}
	return []openapi.Operation{
		{
			Route: "PATCH /v1/error-groups/{group}", Handle: a.changes(with(d.decide)), ID: "decideErrorGroup",
			Summary:     "Resolve, ignore, reopen, assign or link an error group, or add a note",
			Description: "What is left out stays as it is; what is so already makes no decision. A later error of a resolved group is a regression.",
			Headers:     idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: decisionBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group"},
			Problems: refused,
		},
		{
			Route: "PATCH /v1/projects/{project}/error-groups", Handle: a.changes(d.decideAll), ID: "decideErrorGroups",
			Summary: "Resolve, ignore, reopen or assign all error groups of a search",
			Description: "At most 1,000 groups that this changes, those last seen first; all of them or, where one can't be, none. " +
				"Send it again while left is above 0.",
			Headers: idempotent{}, Query: groupFilters{},
			Body:     openapi.Body{Type: bulkDecisionBody{}},
			Answer:   openapi.Answer{Type: bulkBody{}, Description: "How many groups were changed"},
			Problems: refused,
		},
		{
			Route: "GET /v1/error-groups/{group}/activity", Handle: a.reads(activity(a.groups)), ID: "listErrorGroupActivity",
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

type untilBody struct {
	At    *time.Time `json:"at,omitempty" description:"This time has come"`
	Count int64      `json:"count,omitempty" minimum:"1" maximum:"1000000000" description:"So many errors have come since"`
	Users int64      `json:"users,omitempty" minimum:"1" maximum:"1000000000" description:"Errors that were accepted since have affected so many users. Exact to 512 of them"`
	Per   string     `json:"per,omitempty" enum:"minute,hour,day,week" description:"Errors or users must come within this span, to a tenth of it"`
}

type bulkDecisionBody struct {
	Status    string     `json:"status,omitempty" enum:"unresolved,resolved,ignored"`
	InRelease string     `json:"in_release,omitempty" maxLength:"200" description:"With resolved: the release from which on it is mended. current is the newest that is known of the group's package, next the one after what each environment runs. Left out: it is mended everywhere"`
	Until     *untilBody `json:"until,omitempty" description:"With ignored: when it is unresolved again, by whatever comes first. Left out: never"`
	Assignee  *string    `json:"assignee,omitempty" maxLength:"100" description:"Id or name of a member, or a label such as that of a team; empty: nobody"`
	Note      string     `json:"note,omitempty" maxLength:"2000" description:"@ and the id or name of a member, or the first word of a name if it is the only one, sends that member mail: at most 10 members of a note, and 20 such mails to each in an hour"`
}

type decisionBody struct {
	bulkDecisionBody
	Links     *[]linkBody `json:"external_links,omitempty" maxItems:"20" description:"All tickets and the like that the group is to be linked to, instead of those that it has. Facts about the group have their addresses"`
	IfVersion *int64      `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group is at this version"`
}

// linkBody is a link to a ticket or the like.
type linkBody struct {
	URL     string `json:"url" required:"true" maxLength:"2000" description:"Begins with https:// or http://. Weir never opens it"`
	Title   string `json:"title,omitempty" maxLength:"200" description:"What people read instead of the address"`
	Webhook string `json:"webhook,omitempty" maxLength:"64" description:"Id of a webhook of the organization that is notified when the group is resolved, reopened or regresses, whether or not it asks for these events; GET /v1/organizations/{organization}/webhooks lists them. Left out: none. If it is deleted later, the link stays and nothing is notified"`
}

func newLinkBody(l grouping.Link) linkBody { return linkBody(l) }

func (b linkBody) link() grouping.Link { return grouping.Link(b) }

// wanted reads what a body asks for.
func (b bulkDecisionBody) wanted() (wanted groups.DecisionRequest, err error) {
	wanted.Note = b.Note
	if b.Status != "" {
		status, known := grouping.ParseStatus(b.Status)
		if !known {
			return wanted, grouping.Invalid{Field: "status", Detail: fmt.Sprintf("The status is %q.", b.Status), Fix: "Use unresolved, resolved or ignored."}
		}
		wanted.Status = status
	}
	if b.InRelease != "" {
		wanted.ResolveIn(b.InRelease)
		if wanted.Status != grouping.Resolved {
			return wanted, grouping.Invalid{Field: "in_release", Detail: "Only what is resolved is so in a release.", Fix: `Send status "resolved" with it.`}
		}
	}
	if b.Assignee != nil {
		wanted.Assign = &grouping.Assignee{ID: *b.Assignee}
	}
	if b.Until != nil {
		wanted.Until, err = b.Until.until()
	}
	return wanted, err
}

func (b untilBody) until() (u grouping.Until, err error) {
	if b.At != nil {
		u.At = b.At.UTC().Truncate(time.Microsecond)
	}
	if u.Per, err = spanNamed("until/per", b.Per); err != nil {
		return u, err
	}
	if u.Count, u.Users = b.Count, b.Users; u == (grouping.Until{}) {
		return u, grouping.Invalid{Field: "until", Detail: "It names no end.", Fix: "Send at, count or users, or leave until out."}
	}
	return u, nil
}

func (d decisionRoutes) decide(c *call, body decisionBody) (any, error) {
	wanted, err := body.wanted()
	if err != nil {
		return nil, err
	}
	if wanted.IfVersion = body.IfVersion; body.Links != nil {
		links := itemsOf(*body.Links, linkBody.link)
		wanted.Links = &links
	}
	return as(newErrorGroupBody)(d.decisions.Decide(c.ctx(), c.request, c.param("group"), wanted))
}

type bulkBody struct {
	Changed    int   `json:"changed" maximum:"1000" description:"Groups that this request has changed"`
	Left       int64 `json:"left" description:"Groups that the same request would still change"`
	Incomplete bool  `json:"incomplete,omitempty" description:"true where the search timed out before all groups were looked at: more may be left. Else absent"`
}

func (d decisionRoutes) decideAll(c *call) (any, error) {
	asked, err := query.Parse(c.r)
	if err != nil {
		return nil, err
	}
	var body bulkDecisionBody
	if err := c.read(&body); err != nil {
		return nil, err
	}
	wanted, err := body.wanted()
	if err != nil {
		return nil, err
	}
	asked.Project = c.project
	bulk, err := d.decisions.DecideAll(c.ctx(), c.request, asked, wanted)
	return bulkBody(bulk), err
}

// maxGroups is how many groups a decision shows.
const maxGroups = 100

type activityBody struct {
	Version   int64         `json:"version" description:"Number of the decision: the version of the group after it"`
	Kind      grouping.Kind `json:"kind" enum:"resolved,ignored,reopened,assigned,noted,merged,unmerged,split,linked,unlinked,unignored,regressed,spiking,quiet"`
	At        time.Time     `json:"at" description:"When it was decided; of what followed by itself, when the error happened or the time was over"`
	Actor     *string       `json:"actor" description:"Id of the member or API key; null: it followed by itself"`
	ActorName string        `json:"actor_name,omitempty" description:"Of the member"`
	Reason    string        `json:"reason,omitempty" description:"Why it followed by itself"`
	decidedBody
	movedBody
	Release     string `json:"release,omitempty" description:"Of the error that it followed from"`
	Environment string `json:"environment,omitempty" description:"Of that error"`
}

// decidedBody is what a person decided.
type decidedBody struct {
	InRelease string     `json:"in_release,omitempty" description:"Of resolved; next is the one after those that were known"`
	Until     *untilBody `json:"until,omitempty" description:"Of ignored"`
	Assignee  *string    `json:"assignee,omitempty" description:"Of assigned; empty: nobody"`
	Note      string     `json:"note,omitempty"`
	Mentions  []string   `json:"mentions,omitempty" maxItems:"10" description:"Of noted: ids of the members whom the note mentions; all but its author got mail"`
	Unknown   []string   `json:"unknown_mentions,omitempty" maxItems:"10" description:"Of noted: what the note has after an @ that is the name of no member, or of several"`
	Link      *linkBody  `json:"link,omitempty" description:"Of linked and unlinked"`
}

// movedBody says which groups were merged, taken out or split off.
type movedBody struct {
	Into   string   `json:"into,omitempty"   description:"Of merged: the group that it was merged into; of split: the one that was split off"`
	From   string   `json:"from,omitempty"   description:"Of unmerged: the group that it was taken out of"`
	Groups []string `json:"groups,omitempty" maxItems:"100" description:"Of merged, unmerged and split: groups that were merged into this one, taken out of it or split off from one of its members, the first 100"`
}

func newActivityBody(a postgres.Activity) activityBody {
	body := activityBody{
		Version: a.Version, Kind: a.Kind, At: a.At.UTC(), Actor: httpapi.OrNull(a.By.ID), ActorName: a.By.Name, Reason: a.Reason,
		decidedBody: decidedBody{InRelease: inRelease(a.Resolution), Until: newUntilBody(a.Until), Note: a.Note, Mentions: a.Mentions, Unknown: a.Unknown},
		movedBody:   movedBody{a.Into, a.From, a.Groups[:min(len(a.Groups), maxGroups)]}, Release: a.Release, Environment: a.Environment,
	}
	if !a.Link.IsZero() {
		link := newLinkBody(a.Link)
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
	return &untilBody{At: httpapi.TimeOrNull(u.At), Count: u.Count, Users: u.Users, Per: groups.SpanName(u.Per)}
}

// activity lists the decisions about a group, the newest first.
func activity(of *groups.Groups) handler {
	return func(c *call) (any, error) {
		before := int64(grouping.MaxDecisions) * 3 // more than there are
		limit, err := c.page(&before)
		if err != nil {
			return nil, err
		}
		found, err := of.Activity(c.ctx(), c.who, c.param("group"), before, limit+1)
		if err != nil {
			return nil, err
		}
		httpapi.WriteList(c.w, c.r, found, limit, newActivityBody, func(last postgres.Activity) int64 { return last.Version })
		return nil, nil
	}
}
