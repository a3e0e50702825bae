package http

import (
	"math"
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type groupRoutes struct{ groups *groups.Groups }

func groupOperations(a *access, of *groups.Groups) []openapi.Operation {
	g := groupRoutes{of}
	noGroup := map[int]string{http.StatusNotFound: "There is no such group in the key's organization"}
	return []openapi.Operation{
		{
			Route: "GET /v1/projects/{project}/error-groups", Handle: a.reads(g.list), ID: "listErrorGroups",
			Summary: "The error groups of a project, the one last seen first",
			Query:   groupsQuery{},
			Answer: openapi.Answer{
				Type: errorGroupListBody{}, Description: "A page of groups. It may end before its limit: its groups hold at most 1 MiB of text",
			},
			Problems: map[int]string{http.StatusNotFound: "There is no such project in the key's organization"},
		},
		{
			Route: "GET /v1/error-groups/{group}", Handle: a.reads(g.get), ID: "getErrorGroup",
			Summary:     "An error group, some of its occurrences, and how it came to be one",
			Description: "The id of a group that was merged into another stands for that one, here and where a group is decided about.",
			Query:       struct{}{},
			Answer:      openapi.Answer{Type: errorGroupDetailBody{}, Description: "The group"},
			Problems:    noGroup,
		},
		{
			Route: "GET /v1/error-groups/{group}/similar", Handle: a.reads(g.similar), ID: "listSimilarErrorGroups",
			Summary:  "Error groups of the project that may be about the same thing, the most alike first, and how their calls differ",
			Query:    struct{}{},
			Answer:   openapi.Answer{Type: similarErrorGroupListBody{}, Description: "The most similar groups, at most 5, each with a similarity of 0.4 or more"},
			Problems: noGroup,
		},
	}
}

type errorGroupBody struct {
	groupIdentityBody
	Status grouping.Status `json:"status" enum:"unresolved,resolved,ignored,archived" description:"Weir itself archives what has not happened for as many days as the project's error settings say, and opens it again when it does"`
	groupErrorsBody
	groupStateBody
	Links []linkBody `json:"external_links" maxItems:"20" description:"Tickets and the like, in the order in which they came"`
}

type groupIdentityBody struct {
	ID      string `json:"id" maxLength:"64"`
	Project string `json:"project" maxLength:"64"`
	Title   string `json:"title" description:"Type and message of the first occurrence, on one line; its first 200 bytes"`
	Type    string `json:"type" description:"Type of the error as sent, its first 200 bytes; empty when none was"`
	Culprit string `json:"culprit" description:"The innermost frame of the sender's own code, its first 200 bytes; empty without a usable stack trace"`
}

// groupErrorsBody is what the errors of a group have in common.
type groupErrorsBody struct {
	Count        int64     `json:"count" minimum:"1" description:"How many accepted entries carried this error; exact"`
	FirstSeen    time.Time `json:"first_seen" description:"Earliest timestamp of an entry of the group"`
	LastSeen     time.Time `json:"last_seen" description:"Latest timestamp of an entry of the group"`
	Levels       []string  `json:"levels" enum:"debug,info,warn,error,fatal"`
	Environments []string  `json:"environments"`
	FirstRelease *string   `json:"first_release" description:"Release of the first error, in release or version of its metadata; null: it named none"`
	LastRelease  *string   `json:"last_release" description:"Release of the last error that named one; null: none did"`
	Merged       int       `json:"merged" minimum:"0" maximum:"1000" description:"How many groups were merged into it: count, times, levels, environments and releases are those of all together"`
}

// groupStateBody is what was decided about a group.
type groupStateBody struct {
	Version      int64      `json:"version" description:"How many decisions there are about the group"`
	Since        *time.Time `json:"since" description:"Since when it has its status; null: since it was first seen"`
	Regressed    bool       `json:"regressed" description:"It was resolved, and an error came again; until somebody decides about its status"`
	InRelease    *string    `json:"in_release" description:"The release from which on it is resolved; next is the one after those that were known then. null: in no certain one"`
	Until        *untilBody `json:"until" description:"When it is no longer ignored; null: never, or it is not"`
	Assignee     *string    `json:"assignee" description:"Who looks after it: the id of a member, or a label; null: nobody"`
	AssigneeName *string    `json:"assignee_name" description:"Of the member, where it was known; else null"`
	Spike        *spikeBody `json:"spike" description:"The last hour in which far more errors came than before; null: none"`
}

type spikeBody struct {
	Hour     time.Time `json:"hour" description:"When it begins"`
	Count    int64     `json:"count" description:"How many errors it had when this was noticed"`
	Expected float64   `json:"expected" description:"How many were usual: an hour of the day before, or this one in the week before"`
}

func newErrorGroupBody(g postgres.Group) errorGroupBody {
	return errorGroupBody{
		groupIdentityBody{g.ID, g.Project, g.Title, g.Type, g.Culprit}, g.Status,
		groupErrorsBody{
			g.Count, g.FirstSeen.UTC(), g.LastSeen.UTC(), g.Severities.Names(), g.Environments, httpapi.OrNull(g.FirstRelease), httpapi.OrNull(g.LastRelease), g.Members,
		},
		groupStateBody{
			g.Version, httpapi.TimeOrNull(g.State.Since), g.State.Regressed, httpapi.OrNull(inRelease(g.State.Resolution)), newUntilBody(g.State.Until),
			httpapi.OrNull(g.State.Assignee.ID), httpapi.OrNull(g.State.Assignee.Name), newSpikeBody(g.State.Spike),
		},
		itemsOf(g.State.Links, newLinkBody),
	}
}

func newSpikeBody(s grouping.Spike) *spikeBody {
	if s.Hour.IsZero() {
		return nil
	}
	return &spikeBody{s.Hour.UTC(), s.Count, s.Expected}
}

type errorGroupDetailBody struct {
	errorGroupBody
	Members     []memberBody         `json:"members" maxItems:"100" description:"The groups that were merged into it, the most frequent first"`
	Occurrences []occurrenceBody     `json:"occurrences" maxItems:"25" description:"Samples: the first 5 and the newest 20 as they came, by time, the newest first; of many at once only some. Of merged groups the newest of all"`
	Entries     entrySearchBody      `json:"entries" description:"A search by GET /v1/logs that finds all of its entries, and others"`
	Why         postgres.Explanation `json:"why"`
	Similar     []string             `json:"similar" description:"Groups of the project that may be about the same thing"`
	Unordered   *string              `json:"unordered_release" description:"Of what is resolved in a release: the release of its last error, if nothing tells whether that is newer. Such errors open nothing. null: there is none"`
}

// groupsQuery are the filters of a list, and its page.
type groupsQuery struct {
	groupFilters
	Sort string `query:"sort" enum:"last_seen,first_seen,count,users" default:"last_seen" description:"The highest or newest first. By first_seen and count 200,000 groups that match are sorted, those last seen; by users, of the last 7 days, 2,000"`
	httpapi.Page
}

// groupFilters choose groups.
type groupFilters struct {
	Status       string    `query:"status" enum:"unresolved,resolved,ignored,archived" description:"Groups with this status"`
	From         time.Time `query:"from" description:"Groups last seen at or after this time, by the entries' timestamps"`
	To           time.Time `query:"to" description:"Groups first seen before this time, by the entries' timestamps"`
	Levels       []string  `query:"level" enum:"debug,info,warn,error,fatal" description:"Groups with entries of one of these levels"`
	Environments []string  `query:"environment" description:"Groups with entries of one of these environments"`
	Words        string    `query:"q" maxLength:"256" description:"Words that all occur in title, type or culprit, whatever their case; also is:STATUS, type:TEXT, release:NAME (the first release of a group, or one of the last 50 that came), environment:NAME, level:NAME, assigned:WHO, where nobody stands for no one"`
	NewSince     string    `query:"new_since" enum:"deploy" description:"deploy: groups that were first seen in the release that came last, or after it had come, in one of the environments that are asked for. A release comes with its first error"`
	Assignee     string    `query:"assignee" maxLength:"100" description:"Groups that this member, by id, or this label looks after"`
}

func (g groupRoutes) list(c *call) (any, error) {
	asked, err := query.Parse(c.r)
	if err != nil {
		return nil, err
	}
	asked.Project = c.project
	page, err := g.groups.List(c.ctx(), c.who.Organization, asked)
	return newErrorGroupListBody(c.r, page), err
}

// errorGroupListBody is a page of groups. It may
// end before its limit: its text is bounded.
type errorGroupListBody struct {
	httpapi.List[listedGroupBody]
	Incomplete bool `json:"incomplete,omitempty" description:"true where the search timed out before the page was full: these are the groups found so far, none perhaps, and next_cursor goes on from there. Else absent"`
}

// listedGroupBody is a group of a list.
type listedGroupBody struct {
	errorGroupBody
	Recent recentBody `json:"recent" description:"What happened of late, by the entries' timestamps"`
}

type recentBody struct {
	From   time.Time `json:"from" description:"When the first of hours begins"`
	Hours  []int64   `json:"hours" minItems:"24" maxItems:"24" description:"Errors in each of the last 24 hours, the present one last"`
	Before int64     `json:"before" description:"Errors in the 24 hours before these"`
	Users  int64     `json:"users" description:"How many users were affected in the last 7 days; an estimate, as in the counts of the group"`
}

func newErrorGroupListBody(r *http.Request, page postgres.Page) errorGroupListBody {
	body := errorGroupListBody{httpapi.List[listedGroupBody]{Items: make([]listedGroupBody, len(page.Groups))}, page.Incomplete}
	for i, g := range page.Groups {
		recent := page.Recent[g.ID]
		body.Items[i] = listedGroupBody{newErrorGroupBody(g), recentBody{recent.From, recent.Hours[:], recent.Before, recent.Users}}
	}
	if page.Next != nil {
		next := httpapi.EncodeCursor(r, page.Next)
		body.NextCursor = &next
	}
	return body
}

func (g groupRoutes) get(c *call) (any, error) {
	found, err := g.groups.Detail(c.ctx(), c.who, c.param("group"))
	return errorGroupDetailBody{
		newErrorGroupBody(found.Group), itemsOf(found.Members, newMemberBody), itemsOf(found.Occurrences, newOccurrenceBody),
		newEntrySearchBody(found.Entries), found.Why,
		itemsOf(found.Similar, func(s groups.Similar) string { return s.Group.ID }), httpapi.OrNull(found.Unordered),
	}, err
}

// similarErrorGroupBody is a group that may be about
// the same fault as the requested one.
type similarErrorGroupBody struct {
	errorGroupBody
	Similarity float64  `json:"similarity" minimum:"0.4" maximum:"1" description:"How much alike the first samples of the two are"`
	OnlyHere   []string `json:"only_here" maxItems:"10" description:"Calls of the group in the path that this one lacks, the innermost first"`
	OnlyThere  []string `json:"only_there" maxItems:"10" description:"Calls of this one that the group in the path lacks"`
}

func newSimilarErrorGroupBody(s groups.Similar) similarErrorGroupBody {
	const decimals = 1000
	return similarErrorGroupBody{
		errorGroupBody: newErrorGroupBody(s.Group), Similarity: math.Round(s.Similarity*decimals) / decimals,
		OnlyHere: append([]string{}, s.OnlyHere...), OnlyThere: append([]string{}, s.OnlyThere...),
	}
}

// similarErrorGroupListBody is all groups that are alike.
type similarErrorGroupListBody struct {
	Items []similarErrorGroupBody `json:"items" maxItems:"20"`
	httpapi.OnePage
}

func (g groupRoutes) similar(c *call) (any, error) {
	found, err := g.groups.Similar(c.ctx(), c.who, c.param("group"))
	return similarErrorGroupListBody{Items: itemsOf(found, newSimilarErrorGroupBody)}, err
}
