package console

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// occurrencesPage is all occurrences of a group, which the gateway puts into their place.
type occurrencesPage struct {
	shownGroup
	Search string // the query of GET /v1/logs that finds them, and others
	Logs   string // the address of the same as a page
	First  string // the address of the first page; empty on it
}

// logsQuery are the parameters of a search of the logs.
func logsQuery(s groups.EntrySearch) url.Values {
	asked := url.Values{"project": {s.Project}, "q": {s.Query}, "from": {queryTime(s.From)}}
	if to := queryTime(s.To); !s.To.IsZero() && to != "" {
		asked.Set("to", to)
	}
	return asked
}

// showOccurrences shows a page with a place for the occurrences of a group.
func (p *groupPages) showOccurrences(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	if err := searchable(id); err != nil {
		return err
	}
	found, err := p.service.Groups.Find(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return err
	}
	if found.ID != id {
		http.Redirect(w, r, occurrencesPath(found.ID), http.StatusSeeOther) // it was merged into that one
		return nil
	}
	search, err := p.service.Occurrences.Search(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return err
	}
	query := logsQuery(search).Encode()
	page := occurrencesPage{p.show(r, found), query, "/console/logs?" + query, ui.NewPager(r, nil).First}
	p.pages.Write(w, r, http.StatusOK, "occurrences", ui.View{Title: page.Title, Of: page.Project, Data: page})
	return nil
}

func occurrencesPath(group string) string { return groupsPath + "/" + group + "/occurrences" }

// selectEntries answers as POST /v1/error-groups/{group}/select does.
func (p *groupPages) selectEntries(w http.ResponseWriter, r *http.Request) error {
	var body query.EntriesBody
	selected, err := p.selected(w, r, &body, &body)
	if err == nil {
		httpapi.WriteJSON(w, http.StatusOK, query.Selected(selected))
	}
	return err
}

// selected reads a body that has or is entries, and selects those of the group.
func (p *groupPages) selected(w http.ResponseWriter, r *http.Request, body any, of *query.EntriesBody) ([]grouping.Occurrence, error) {
	reader := identity.FromContext(r.Context())
	release, err := p.service.Occurrences.Acquire(r.Context(), reader.Organization)
	if err != nil {
		return nil, err
	}
	defer release()
	entries, err := query.ReadEntries(w, r, body, of)
	if err != nil {
		return nil, err
	}
	return p.service.Occurrences.Select(r.Context(), reader, chi.URLParam(r, "group"), entries)
}

// occurrencesBody is entries that were selected.
type occurrencesBody struct {
	query.EntriesBody
	NextCursor *string `json:"next_cursor"`
	Incomplete bool    `json:"incomplete"` // the search timed out before the page was full
}

// occurrencesPart is a page of the occurrences of a group.
type occurrencesPart struct {
	Incomplete  bool
	Occurrences []listedOccurrence
	Pager       ui.Pager
}

type listedOccurrence struct {
	At                            time.Time
	Href                          string // of the entry in the logs
	Levels                        []ui.Level
	Environment, Release, Message string
}

// showSelected answers with the part about entries of a group; others are left out.
func (p *groupPages) showSelected(w http.ResponseWriter, r *http.Request) error {
	var body occurrencesBody
	selected, err := p.selected(w, r, &body, &body.EntriesBody)
	if err != nil {
		return err
	}
	part := occurrencesPart{Incomplete: body.Incomplete, Pager: ui.NewPager(r, body.NextCursor)}
	for _, o := range selected {
		part.Occurrences = append(part.Occurrences, listOccurrence(o))
	}
	p.pages.WritePart(w, "occurrencelist", part)
	return nil
}

// maxListedMessage is how many bytes of a message its row shows.
const maxListedMessage = 300

func listOccurrence(o grouping.Occurrence) listedOccurrence {
	named := o.Named()
	entry := groups.EntrySearch{Project: o.Project, Query: "exists:error", From: named, To: named.Add(time.Microsecond)}
	return listedOccurrence{
		At: o.At, Href: "/console/logs?" + logsQuery(entry).Encode(), Levels: ui.Levels(o.Severity.Names()), Environment: o.Environment, Release: o.Release,
		Message: trace.Cut(cmp.Or(o.Error.Message, o.Message, "(no message)"), maxListedMessage),
	}
}
