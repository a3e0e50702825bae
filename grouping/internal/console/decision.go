package console

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// What the buttons of the pages do.
const (
	doResolve  = "resolve"
	doNext     = "resolve-next"
	doRelease  = "resolve-in"
	doIgnore   = "ignore"
	doUntil    = "ignore-until"
	doReopen   = "reopen"
	doAssignMe = "assign-me"
	doAssign   = "assign"
	doNote     = "note"
	doMerge    = "merge"
	doUnmerge  = "unmerge"
	doSplit    = "split"
	doLink     = "link"
	doUnlink   = "unlink"
)

// done are texts for what was done; those of several end in -all.
var done = map[string]string{ // bounded by what the buttons do
	doResolve: "It is resolved. A later error opens it again.", doNext: "It is resolved in the next release.", doRelease: "It is resolved in that release.",
	doIgnore: "It is ignored.", doUntil: "It is ignored until then.", doReopen: "It is open again.",
	doAssignMe: "You look after it now.", doAssign: "It is assigned.", doNote: "The note is kept.",
	doResolve + "-all": "They are resolved. Later errors open them again.", doIgnore + "-all": "They are ignored.", doReopen + "-all": "They are open again.",
	doAssignMe + "-all": "You look after them now.", "left": "1,000 errors are changed. There are more: do it again for the others.",
	"none":     "Nothing is changed: choose errors first.",
	"conflict": "Nothing is changed: somebody decided about one of these meanwhile. They are shown as they are now; if it still makes sense, choose them again.",
	doMerge:    "They are one group now, and what comes is shown here, too.", doMerge + "-all": "They are one group now: the one that was seen first.",
	doUnmerge: "They are groups of their own again.", "few": "Nothing is merged: choose 2 to 100 errors of one project.",
	doLink: "The link is kept.", doUnlink: "The link is gone.",
	doSplit: "From now on errors like it are a group of their own, which the first of them creates. Earlier ones stay here.",
}

// untils are the ends of ignoring that the page offers.
var untils = []struct {
	value, text string
	until       func(now time.Time) grouping.Until
}{
	{"1h", "for an hour", untilIn(time.Hour)},
	{"24h", "for 24 hours", untilIn(24 * time.Hour)},
	{"7d", "for a week", untilIn(7 * 24 * time.Hour)},
	{"n1", "until it happens again", untilCount(1, 0)},
	{"n10", "until it happens 10 times", untilCount(10, 0)},
	{"n100", "until it happens 100 times", untilCount(100, 0)},
	{"h10", "until it happens 10 times in an hour", untilCount(10, time.Hour)},
	{"h100", "until it happens 100 times in an hour", untilCount(100, time.Hour)},
	{"h1000", "until it happens 1,000 times in an hour", untilCount(1000, time.Hour)},
	{"u10", "until it affects 10 users", untilUsers(10)},
	{"u100", "until it affects 100 users", untilUsers(100)},
}

func untilIn(span time.Duration) func(time.Time) grouping.Until {
	return func(now time.Time) grouping.Until {
		return grouping.Until{At: now.Add(span).UTC().Truncate(time.Second)}
	}
}

func untilUsers(n int64) func(time.Time) grouping.Until {
	return func(time.Time) grouping.Until { return grouping.Until{Users: n} }
}

func untilCount(n int64, per time.Duration) func(time.Time) grouping.Until {
	return func(time.Time) grouping.Until { return grouping.Until{Count: n, Per: per} }
}

// decideForms is what the forms of a page need.
type decideForms struct {
	May     bool   // the reader's role permits it
	Key     string // idempotency key
	Version int64
	Untils  []ui.Choice
	Newest  string // the newest release of the group's package; empty: none is known
	Release ui.Field
	Label   ui.Field
	Example string // name of a member
	Link    []ui.Field
}

func (c *console) newDecideForms(r *http.Request, g postgres.Group, newest string) decideForms {
	d := decideForms{May: may(r), Key: rand.Text(), Version: g.Version, Newest: newest, Example: "Ada"}
	for _, u := range untils {
		d.Untils = append(d.Untils, ui.Choice{Value: u.value, Text: u.text})
	}
	d.Release = ui.Field{Name: "release", Label: "Release", Value: newest, MaxLength: grouping.MaxRelease, Autocomplete: "off",
		Hint: "Its errors, and those of later releases, open it again."}
	assignee := grouping.AssigneeNamed(g.State.Assignee.Name, c.members(r))
	d.Label = ui.Field{Name: "assignee", Label: "Who looks after it", Value: g.State.Assignee.ID, MaxLength: grouping.MaxAssignee, Autocomplete: "off",
		Hint: "A member or a label, such as that of a team. Empty: nobody."}
	if assignee.ID == g.State.Assignee.ID { // the name alone says who it is
		d.Label.Value = assignee.Name
	}
	d.Label.Offers = namesOf(c.members(r))
	if len(d.Label.Offers) > 0 {
		d.Example = d.Label.Offers[0]
	}
	d.Link = []ui.Field{
		{Name: "url", Label: "Address", Type: "url", MaxLength: grouping.MaxLinkURL, Required: true, Autocomplete: "off", Hint: "Of a ticket, or the like."},
		{Name: "title", Label: "What it is", MaxLength: grouping.MaxLinkTitle, Optional: true, Autocomplete: "off", Hint: "Such as PAY-7."},
		{Name: "webhook", Label: "Webhook", Optional: true, Hint: "It is notified when the error is resolved or comes back.",
			Choices: ui.NewChoices("", append([][2]string{{"", "None"}}, webhookPairs(c.directory.Webhooks(identity.FromContext(r.Context()).Organization))...)...)},
	}
	return d
}

// wantedBy reads what a button does.
func (p *groupPages) wantedBy(r *http.Request) (wanted groups.DecisionRequest, err error) {
	switch does := r.PostForm.Get("do"); does {
	case doResolve, doNext, doRelease:
		wanted.Status = grouping.Resolved
		wanted.Resolution.Next = does == doNext
		if does == doRelease {
			wanted.Resolution.Release = strings.TrimSpace(r.PostForm.Get("release"))
		}
	case doIgnore, doUntil:
		wanted.Status = grouping.Ignored
		for _, u := range untils {
			if does == doUntil && u.value == r.PostForm.Get("until") {
				wanted.Until = u.until(p.clock())
			}
		}
	case doReopen:
		wanted.Status = grouping.Unresolved
	case doAssignMe:
		me := identity.FromContext(r.Context())
		wanted.Assign = &grouping.Assignee{ID: me.Member, Name: me.Name}
	case doAssign:
		wanted.Assign = &grouping.Assignee{ID: strings.TrimSpace(r.PostForm.Get("assignee"))}
	case doNote:
		wanted.Note = strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get("note"), "\r\n", "\n"))
	default:
		return wanted, httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest,
			fmt.Sprintf("%q is nothing that can be done. Reload the page and try again.", does))
	}
	return wanted, nil
}

// decide does what a button of a group's page says. If somebody
// decided meanwhile, the page shows that first.
func (p *groupPages) decide(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	var ifVersion *int64
	if version, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64); err == nil {
		ifVersion = &version
	}
	id := chi.URLParam(r, "group")
	err := unlessRepeated(p.carryOut(r, request, id, ifVersion))
	var conflict grouping.Conflict
	var invalid grouping.Invalid
	switch {
	case errors.As(err, &conflict):
		return p.writeGroup(w, r, http.StatusConflict, "Somebody decided meanwhile: see Activity. If what you wanted still makes sense, do it again.")
	case errors.As(err, &invalid):
		return p.writeGroup(w, r, http.StatusUnprocessableEntity, invalid.Error())
	case err != nil:
		return err
	}
	return redirect(w, r, r.PostForm.Get("do"), groupsPath+"/"+id)
}

// carryOut does what a button of a group's page says.
func (p *groupPages) carryOut(r *http.Request, request groups.Request, id string, ifVersion *int64) (err error) {
	merging := groups.MergeRequest{Into: id, Groups: r.PostForm["group"], IfVersion: ifVersion}
	switch r.PostForm.Get("do") {
	case doMerge:
		_, err = p.service.Merges.Merge(r.Context(), request, merging)
	case doUnmerge:
		_, err = p.service.Merges.Unmerge(r.Context(), request, merging)
	case doSplit:
		_, err = p.service.Merges.Split(r.Context(), request, id, r.PostForm.Get("hash"), ifVersion)
	case doLink:
		field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
		err = p.link(r, request, id, ifVersion, field("url"), grouping.Link{URL: field("url"), Title: field("title"), Webhook: field("webhook")})
	case doUnlink:
		err = p.link(r, request, id, ifVersion, r.PostForm.Get("link"))
	default:
		wanted, err := p.wantedBy(r)
		if err != nil {
			return err
		}
		wanted.IfVersion = ifVersion
		_, err = p.service.Decisions.Decide(r.Context(), request, id, wanted)
		return err
	}
	return err
}

// link has a group lead elsewhere instead of to an address.
func (p *groupPages) link(r *http.Request, request groups.Request, id string, ifVersion *int64, url string, instead ...grouping.Link) error {
	found, err := p.service.Groups.Find(r.Context(), request.Who, id)
	if err != nil {
		return err
	}
	links := slices.DeleteFunc(slices.Clone(found.State.Links), func(l grouping.Link) bool { return l.URL == url })
	links = append(links, instead...)
	wanted := groups.DecisionRequest{Command: grouping.Command{Links: &links, IfVersion: cmp.Or(ifVersion, &found.Version)}}
	_, err = p.service.Decisions.Decide(r.Context(), request, id, wanted)
	return err
}

// decideAll does what a button of the list says, to the chosen groups or
// to all that the search finds, and shows the list again.
func (p *groupPages) decideAll(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	flash := r.PostForm.Get("do") + "-all"
	chosen, versions := chosenIn(r)
	if r.PostForm.Get("do") == doMerge {
		return p.mergeChosen(w, r, request, chosen)
	}
	wanted, err := p.wantedBy(r)
	if err != nil {
		return err
	}
	switch {
	case r.PostForm.Get("all") != "":
		left, err := p.decideSearch(r, request, wanted)
		if err != nil {
			return err
		}
		if left {
			flash = "left"
		}
	case len(chosen) == 0 || len(chosen) > groups.MaxBulk:
		flash = "none"
	default:
		wanted.Versions = versions
		_, err := p.service.Decisions.DecideEach(r.Context(), request, chosen, wanted)
		if _, is := errors.AsType[grouping.Conflict](err); is {
			return backToList(w, r, "conflict")
		}
		if err = unlessRepeated(err); err != nil {
			return err
		}
	}
	return backToList(w, r, flash)
}

// chosenIn are the groups that are chosen in a list, and the versions in which it showed them.
func chosenIn(r *http.Request) (ids []string, versions map[string]int64) {
	versions = map[string]int64{} // bounded by the form
	for _, text := range r.PostForm["group"] {
		id, version, _ := strings.Cut(text, "/")
		if n, err := strconv.ParseInt(version, 10, 64); err == nil {
			versions[id] = n
		}
		ids = append(ids, id)
	}
	return ids, versions
}

// mergeChosen merges the chosen groups into the one that was seen first.
func (p *groupPages) mergeChosen(w http.ResponseWriter, r *http.Request, request groups.Request, chosen []string) error {
	if len(chosen) < 2 || len(chosen) > grouping.MaxMerged || r.PostForm.Get("all") != "" {
		return backToList(w, r, "few")
	}
	_, err := p.service.Merges.Merge(r.Context(), request, groups.MergeRequest{Groups: chosen})
	if err = unlessRepeated(err); err != nil {
		return err
	}
	return backToList(w, r, doMerge+"-all")
}

func backToList(w http.ResponseWriter, r *http.Request, flash string) error {
	back := url.URL{Path: groupsPath, RawQuery: r.URL.RawQuery}
	return redirect(w, r, flash, back.String())
}

// decideSearch decides about all groups that the address finds.
func (p *groupPages) decideSearch(r *http.Request, request groups.Request, wanted groups.DecisionRequest) (left bool, err error) {
	_, asked := ui.WithTimes(r, ui.AnyTime, p.clock())
	query, _, err := p.queryOf(ui.Without(asked, "cursor"))
	if err != nil {
		return false, err
	}
	bulk, err := p.service.Decisions.DecideAll(r.Context(), request, query, wanted)
	return bulk.Left > 0 || bulk.Incomplete, unlessRepeated(err)
}
