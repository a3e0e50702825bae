package console

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/contract/entryfield"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// entryPart is what the page of an error group shows of the log entry of a sample.
type entryPart struct {
	Same     []ui.Link // entries around it of its trace, its request, its host
	Rows     []partRow // of the first of Same: the entry, and some before and after it, the oldest first
	Raw      string    // the stack trace of its error as it was sent
	RawIsCut bool      // Raw is only its beginning
	Metadata []member
	Cut      bool // Metadata is only its beginning
}

// mostUnfolded is how many values of metadata are shown unfolded.
const mostUnfolded = 10

// Long reports whether the metadata is folded.
func (p entryPart) Long() bool {
	return len(p.Metadata) > mostUnfolded || slices.ContainsFunc(p.Metadata, func(m member) bool { return m.Lines || len(m.Text) > maxValue })
}

// maxRaw is how many bytes of a raw stack trace are shown.
const maxRaw = 64 << 10

// showEntry answers with the part about an entry of a project, by its id and its time to the microsecond.
func (c *console) showEntry(w http.ResponseWriter, r *http.Request) error {
	id := r.URL.Query().Get("id")
	search, err := searchEntry(r.URL.Query())
	if err != nil {
		return err
	}
	for _, search := range []ingest.Search{search, ahead(search)} {
		answer, err := c.Service.Search(r.Context(), identity.FromContext(r.Context()), search)
		if err != nil {
			return ingesthttp.NotFound(err, search)
		}
		if at := slices.IndexFunc(answer.Found, func(f ingest.Found) bool { return entryID(&f) == id }); at >= 0 {
			found := answer.Found[at]
			part := showEntryPart(&found)
			if len(part.Same) > 0 {
				part.Rows = c.rowsAround(r, &found, part.Same[0])
			}
			answer.Close()
			c.pages.WritePart(w, "entry", part)
			return nil
		}
		answer.Close()
	}
	return httpapi.NotFound("entry", id)
}

func showEntryPart(found *ingest.Found) entryPart {
	part := entryPart{Same: sameAs(found)}
	part.Raw, part.RawIsCut = beginning(rawTrace(found.Text), maxRaw)
	if metadata := valueIn(found.Text, entryfield.Metadata); metadata != nil {
		part.Metadata, part.Cut = valuesOf(metadata, entryfield.Metadata)
	}
	return part
}

// A partRow is one of the entries around.
type partRow struct {
	Time, Clock     string
	Level           ui.Level
	Source, Message string
	Self            bool // the entry itself
}

// How many entries before and after one are shown, and how long they are looked for: the
// gateway waits two seconds for the part.
const (
	mostAround = 5
	aroundTime = 800 * time.Millisecond
)

// rowsAround are the entry, and those before and after it that a link leads to; fewer where
// a search fails or takes too long, as the link leads there anyway.
func (c *console) rowsAround(r *http.Request, of *ingest.Found, link ui.Link) (rows []partRow) {
	around, err := searchAround(of, link)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), aroundTime)
	defer cancel()
	for _, later := range []bool{false, true} {
		around.OldestFirst = later
		answer, err := c.Service.Search(ctx, identity.FromContext(r.Context()), around)
		if err == nil {
			for i := range answer.Found {
				rows = append(rows, newPartRow(&answer.Found[i]))
			}
			answer.Close()
		}
		if !later {
			slices.Reverse(rows)
			self := newPartRow(of)
			self.Self = true
			rows = append(rows, self)
		}
	}
	return rows
}

func newPartRow(found *ingest.Found) partRow {
	row := partRow{
		Time: found.Time.String(), Clock: found.Time.Time().Format("15:04:05.000"), Level: ui.Level(found.Level.String()), Source: valueOf(service, found),
	}
	if read, err := ingest.ReadBack(found.Text); err == nil {
		row.Message, _ = beginning(string(read.Message), maxValue)
	}
	return row
}

// searchAround looks for the entries around one that a link leads to.
func searchAround(of *ingest.Found, link ui.Link) (search ingest.Search, err error) {
	address, err := url.Parse(link.Href)
	if err != nil {
		return search, err
	}
	search = ingest.Search{Project: address.Query().Get("project"), Start: ingest.Position{After: &of.Place}, Limit: mostAround, MaxBytes: maxPage}
	from, to := timesAround(of)
	search.From, search.To = &from, &to
	search.Query, err = ingest.ParseQuery(address.Query().Get("q"))
	return search, err
}

// rawTrace is the stack trace of an entry's error as it was sent; empty: it has none.
func rawTrace(text []byte) string {
	trace := valueIn(valueIn(text, entryfield.Error), entryfield.ErrorStackTrace)
	var elements []json.RawMessage
	if json.Unmarshal(trace, &elements) != nil {
		elements = []json.RawMessage{trace} // it is one text
	}
	var lines []string
	for _, element := range elements {
		var line string
		if json.Unmarshal(element, &line) == nil {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// valueIn is a value of an object by its exact name; nil: there is none.
func valueIn(object []byte, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	return members[name]
}

// entryID is the id of an entry for clients.
func entryID(found *ingest.Found) string {
	return hex.EncodeToString(found.Batch[:]) + "-" + strconv.Itoa(found.Index)
}

// mostBeside is how many entries a search for one reads: those of its microsecond that come before it.
const mostBeside = 100

// searchEntry looks for the entry that a query names. It begins at the
// entry, unless its time has nanoseconds.
func searchEntry(query url.Values) (search ingest.Search, err error) {
	from, ok := ingest.ParseInstant([]byte(query.Get("time")))
	if !ok {
		return search, httpapi.Invalid("?time", "invalid_timestamp", fmt.Sprintf("time is %q, not a time.", query.Get("time")),
			"Write UTC as 2026-01-31T12:00:00Z, with a fraction of 1 to 9 digits or none.")
	}
	before := ingest.Place{Time: from}
	batch, index, _ := strings.Cut(query.Get("id"), "-")
	bytes, err := hex.DecodeString(batch)
	if err == nil {
		before.Index, err = strconv.Atoi(index)
	}
	if err != nil || len(bytes) != len(before.Batch) {
		return search, httpapi.NotFound("entry", query.Get("id"))
	}
	copy(before.Batch[:], bytes)
	before.Index--
	to := from
	to.Nanos += 1000
	if to.Nanos >= 1e9 {
		to = to.Plus(1)
		to.Nanos -= 1e9
	}
	return ingest.Search{
		Project: query.Get("project"), From: &from, To: &to, OldestFirst: true, Start: ingest.Position{After: &before}, Limit: mostBeside, MaxBytes: maxPage,
	}, nil
}

// maxAhead is by how many seconds the clock of who sent an error may be ahead for its entry to be found.
const maxAhead = 600

// ahead looks for the entry with an error that was sent with a time of
// the future: its sample has the time of its acceptance instead.
func ahead(search ingest.Search) ingest.Search {
	to := search.From.Plus(maxAhead)
	search.To, search.Query = &to, withError
	return search
}

var withError, _ = ingest.ParseQuery("exists:error")

// minutesAround is how long before and after an entry others of its trace, request or host are looked for.
const minutesAround = 5

func timesAround(found *ingest.Found) (from, to ingest.Instant) {
	return found.Time.Plus(-60 * minutesAround), found.Time.Plus(60 * minutesAround)
}

// inCommon is what entries can have in common, and the fields that say so, of which the first counts.
var inCommon = []struct {
	text   string
	fields []string
}{
	{"on the same trace", []string{"metadata.trace_id"}},
	{"of the same request", []string{"metadata.request_id"}},
	{"on the same host", []string{"metadata.host.name", "metadata.host"}},
}

// sameAs links to the entries around one that have something in common with it.
func sameAs(found *ingest.Found) (links []ui.Link) {
	from, to := timesAround(found)
	for _, common := range inCommon {
		for _, name := range common.fields {
			field, _ := ingest.ParseField(name)
			value := field.Value(&found.Stored, "")
			term, ok := ingest.Term(name, value)
			if !ok || value == "" {
				continue
			}
			query := url.Values{"q": {term}, "from": {from.String()}, "to": {to.String()}, "order": {"asc"}}
			if name != "metadata.trace_id" { // a trace goes through projects
				query.Set("project", found.Project)
			}
			links = append(links, ui.Link{Text: common.text, Href: "/console/logs?" + query.Encode()})
			break
		}
	}
	return links
}
