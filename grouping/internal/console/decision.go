package console

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	groupinghttp "github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
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
	"none":  "Nothing is changed: choose errors first.",
	doMerge: "They are one group now, and what comes is shown here, too.", doMerge + "-all": "They are one group now: the one that was seen first.",
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
}

func untilIn(span time.Duration) func(time.Time) grouping.Until {
	return func(now time.Time) grouping.Until {
		return grouping.Until{At: now.Add(span).UTC().Truncate(time.Second)}
	}
}

func untilCount(n int64, per time.Duration) func(time.Time) grouping.Until {
	return func(time.Time) grouping.Until { return grouping.Until{Count: n, Per: per} }
}

// decider is what the forms of a page need.
type decider struct {
	May     bool   // the reader's role permits it
	Key     string // idempotency key
	Version int64
	Untils  []ui.Choice
	Newest  string // the newest release of the group's package; empty: none is known
	Release ui.Field
	Label   ui.Field
	Link    []ui.Field
}

func (c *console) decider(r *http.Request, g postgres.Group, newest string) decider {
	d := decider{May: identity.RoleDecides(identity.FromContext(r.Context()).Role()), Key: rand.Text(), Version: g.Version, Newest: newest}
	for _, u := range untils {
		d.Untils = append(d.Untils, ui.Choice{Value: u.value, Text: u.text})
	}
	d.Release = ui.Field{Name: "release", Label: "Release", Value: newest, MaxLength: grouping.MaxRelease, Autocomplete: "off",
		Hint: "Its errors, and those of later releases, open it again."}
	d.Label = ui.Field{Name: "assignee", Label: "Who looks after it", Value: g.State.Assignee.ID, MaxLength: grouping.MaxAssignee, Autocomplete: "off",
		Hint: "A member's id or a label, such as that of a team. Empty: nobody."}
	d.Link = []ui.Field{
		{Name: "url", Label: "Address", Type: "url", MaxLength: grouping.MaxLinkURL, Required: true, Autocomplete: "off", Hint: "Of a ticket, or the like."},
		{Name: "title", Label: "What it is", MaxLength: grouping.MaxLinkTitle, Optional: true, Autocomplete: "off", Hint: "Such as PAY-7."},
		{Name: "webhook", Label: "Webhook", Optional: true, Autocomplete: "off",
			Hint: "Id of one under Settings. It is told when the error is resolved or comes back."},
	}
	return d
}

// requestOf is the request of a member who may decide, with its form read.
func requestOf(w http.ResponseWriter, r *http.Request) (request groups.Request, err error) {
	who := identity.FromContext(r.Context())
	if !identity.RoleDecides(who.Role()) {
		return request, httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role here is "+who.Role()+", which may not resolve, ignore or assign errors. Ask one of the owners, admins or developers.")
	}
	err = ui.ReadForm(w, r)
	request = groups.Request{Who: who, By: postgres.Author{ID: who.Member, Name: who.Name, Request: httpapi.RequestID(r.Context())}}
	if r.PostForm.Get("key") != "" {
		request.Key = r.PostForm.Encode()
	}
	return request, err
}

// unlessRepeated is an error, unless the same form was sent before: its key
// is all of it, and its times may differ.
func unlessRepeated(err error) error {
	if errors.Is(err, idempotency.ErrReused) {
		return nil
	}
	return err
}

// wishOf reads what a button does.
func (c *console) wishOf(r *http.Request) (wish groups.Wish, err error) {
	switch does := r.PostForm.Get("do"); does {
	case doResolve, doNext, doRelease:
		wish.Status = grouping.Resolved
		wish.Resolution.Next = does == doNext
		if does == doRelease {
			wish.Resolution.Release = strings.TrimSpace(r.PostForm.Get("release"))
		}
	case doIgnore, doUntil:
		wish.Status = grouping.Ignored
		for _, u := range untils {
			if does == doUntil && u.value == r.PostForm.Get("until") {
				wish.Until = u.until(c.Clock())
			}
		}
	case doReopen:
		wish.Status = grouping.Unresolved
	case doAssignMe:
		me := identity.FromContext(r.Context())
		wish.Assign = &grouping.Assignee{ID: me.Member, Name: me.Name}
	case doAssign:
		wish.Assign = &grouping.Assignee{ID: strings.TrimSpace(r.PostForm.Get("assignee"))}
	case doNote:
		wish.Note = strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get("note"), "\r\n", "\n"))
	default:
		return wish, httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest,
			fmt.Sprintf("%q is nothing that can be done. Reload the page and try again.", does))
	}
	return wish, nil
}

// decide does what a button of a group's page says. If somebody
// decided meanwhile, the page shows that first.
func (c *console) decide(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(w, r)
	if err != nil {
		return err
	}
	var ifVersion *int64
	if version, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64); err == nil {
		ifVersion = &version
	}
	id := chi.URLParam(r, "group")
	err = unlessRepeated(c.carryOut(r, request, id, ifVersion))
	var conflict grouping.Conflict
	var invalid grouping.Invalid
	switch {
	case errors.As(err, &conflict):
		return c.writeGroup(w, r, http.StatusConflict, "Somebody decided meanwhile: see Activity. If what you wanted still makes sense, do it again.")
	case errors.As(err, &invalid):
		return c.writeGroup(w, r, http.StatusUnprocessableEntity, invalid.Error())
	case errors.Is(err, postgres.ErrNoGroup):
		return httpapi.NotFound("error group", id)
	case err != nil:
		return groupinghttp.Refusal(err)
	}
	ui.SetFlash(w, r.PostForm.Get("do"))
	http.Redirect(w, r, groupsPath+"/"+id, http.StatusSeeOther)
	return nil
}

// carryOut does what a button of a group's page says.
func (c *console) carryOut(r *http.Request, request groups.Request, id string, ifVersion *int64) (err error) {
	merging := groups.Merging{Into: id, Groups: r.PostForm["group"], IfVersion: ifVersion}
	switch r.PostForm.Get("do") {
	case doMerge:
		_, err = c.Service.Merge(r.Context(), request, merging)
	case doUnmerge:
		_, err = c.Service.Unmerge(r.Context(), request, merging)
	case doSplit:
		_, err = c.Service.Split(r.Context(), request, id, r.PostForm.Get("occurrence"), ifVersion)
	case doLink:
		field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
		_, _, err = c.Service.AddLink(r.Context(), request, id, grouping.Link{URL: field("url"), Title: field("title"), Webhook: field("webhook")})
	case doUnlink:
		_, err = c.Service.RemoveLink(r.Context(), request, id, r.PostForm.Get("link"))
	default:
		wish, err := c.wishOf(r)
		if err != nil {
			return err
		}
		wish.IfVersion = ifVersion
		_, err = c.Service.Decide(r.Context(), request, id, wish)
		return err
	}
	return err
}

// decideAll does what a button of the list says, to the chosen groups or
// to all that the search finds, and shows the list again.
func (c *console) decideAll(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(w, r)
	if err != nil {
		return err
	}
	chosen, flash := r.PostForm["group"], r.PostForm.Get("do")+"-all"
	if r.PostForm.Get("do") == doMerge {
		return c.mergeChosen(w, r, request, chosen)
	}
	wish, err := c.wishOf(r)
	if err != nil {
		return err
	}
	switch {
	case r.PostForm.Get("all") != "":
		left, err := c.decideSearch(r, request, wish)
		if err != nil {
			return groupinghttp.Refusal(err)
		}
		if left {
			flash = "left"
		}
	case len(chosen) == 0 || len(chosen) > groups.MaxBulk:
		flash = "none"
	default:
		_, err := c.Service.DecideEach(r.Context(), request, chosen, wish)
		err = unlessRepeated(err)
		if errors.Is(err, postgres.ErrNoGroup) {
			return httpapi.NotFound("error group", chosen[0])
		}
		if err != nil {
			return groupinghttp.Refusal(err)
		}
	}
	backToList(w, r, flash)
	return nil
}

// mergeChosen merges the chosen groups into the one that was seen first.
func (c *console) mergeChosen(w http.ResponseWriter, r *http.Request, request groups.Request, chosen []string) error {
	if len(chosen) < 2 || len(chosen) > grouping.MaxMerged || r.PostForm.Get("all") != "" {
		backToList(w, r, "few")
		return nil
	}
	_, err := c.Service.Merge(r.Context(), request, groups.Merging{Groups: chosen})
	if err = unlessRepeated(err); errors.Is(err, postgres.ErrNoGroup) {
		return httpapi.NotFound("error group", chosen[0])
	}
	if err != nil {
		return groupinghttp.Refusal(err)
	}
	backToList(w, r, doMerge+"-all")
	return nil
}

func backToList(w http.ResponseWriter, r *http.Request, flash string) {
	ui.SetFlash(w, flash)
	back := url.URL{Path: groupsPath, RawQuery: r.URL.RawQuery}
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// decideSearch decides about all groups that the address finds.
func (c *console) decideSearch(r *http.Request, request groups.Request, wish groups.Wish) (left bool, err error) {
	_, asked := ui.WithTimes(r, ui.AnyTime, c.Clock())
	query, _, err := c.queryOf(ui.Without(asked, "cursor"))
	if err != nil {
		return false, err
	}
	bulk, err := c.Service.DecideAll(r.Context(), request, query, wish)
	return bulk.Left > 0 || bulk.Incomplete, unlessRepeated(err)
}

// shownActivity is a decision as the page shows it.
type shownActivity struct {
	At        time.Time
	Who, Did  string
	Note      string
	Other     string // the address of the other group; empty: none, or several
	Regressed bool
}

// who names an author or an assignee to the reader.
func who(r *http.Request, id, name string) string {
	if id != "" && id == identity.FromContext(r.Context()).Member {
		return "you"
	}
	return cmp.Or(name, id)
}

func showActivity(r *http.Request, found []postgres.Activity) (shown []shownActivity) {
	for _, a := range found {
		s := shownActivity{At: a.At, Who: who(r, a.By.ID, a.By.Name), Note: a.Note, Regressed: a.Kind == grouping.WasRegressed}
		switch a.Kind {
		case grouping.WasResolved:
			s.Did = "resolved it" + resolvedIn(a.Resolution)
		case grouping.WasIgnored:
			s.Did = "ignored it" + ignoredUntil(a.Until)
		case grouping.WasReopened:
			s.Did = cmp.Or(a.Reason, "opened it again")
		case grouping.WasUnignored:
			s.Did = cmp.Or(a.Reason, "no longer ignored it")
		case grouping.WasRegressed, grouping.WasSpiking, grouping.WasQuiet:
			s.Did = a.Reason
		case grouping.WasAssigned:
			s.Did = assignedTo(r, a)
		case grouping.WasNoted:
			s.Did = "wrote"
		case grouping.WasLinked:
			s.Did = "linked it to " + a.Link.Name()
		case grouping.WasUnlinked:
			s.Did = "removed the link to " + a.Link.Name()
		case grouping.WasMerged, grouping.WasUnmerged, grouping.WasSplit:
			if s.Did = regrouped(a.Decision); a.By.ID == "" && a.Reason != "" {
				s.Did = a.Reason
			}
			if other := cmp.Or(a.Into, a.From); other != "" {
				s.Other = groupsPath + "/" + other
			}
		}
		shown = append(shown, s)
	}
	return shown
}

// regrouped says how groups were merged or split.
func regrouped(d grouping.Decision) string {
	n := fmt.Sprintf("%d groups", len(d.Groups))
	if len(d.Groups) == 1 {
		n = "a group"
	}
	switch {
	case d.Into != "" && d.Kind == grouping.WasMerged:
		return "merged it into another group"
	case d.From != "":
		return "took it out of another group"
	case d.Into != "":
		return "split errors off, as another group from then on"
	case d.Kind == grouping.WasMerged:
		return "merged " + n + " into it"
	case d.Kind == grouping.WasUnmerged:
		return "took " + n + " out of it"
	}
	return "split errors off from a group that was merged into it"
}

func resolvedIn(in grouping.Resolution) string {
	if in.Next {
		known := slices.Compact(slices.Sorted(maps.Values(in.After)))
		return " in the release after " + strings.Join(known, ", ")
	}
	if in.Release != "" {
		return " in " + in.Release
	}
	return ""
}

func ignoredUntil(u grouping.Until) (words string) {
	if !u.At.IsZero() {
		words = " until " + ui.Instant(u.At)
	}
	if u.Count == 1 {
		return words + " until it happens again"
	}
	if u.Count > 1 {
		words += " until it happens " + ui.Count(u.Count) + " times"
	}
	for name, span := range grouping.Spans {
		if u.Per == span {
			words += " within one " + name
		}
	}
	return words
}

// assignedTo says to whom a group was assigned, and why if nobody did.
func assignedTo(r *http.Request, a postgres.Activity) string {
	did := "assigned it to "
	if a.By.ID == "" {
		did = "It is assigned to "
	}
	if did += cmp.Or(who(r, a.Assignee.ID, a.Assignee.Name), "nobody"); a.Reason != "" {
		did += ". " + a.Reason
	}
	return did
}
