package http

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// Logs serves GET /v1/logs: the stored entries of the caller's organization.
type Logs struct {
	Service *searches.Service
	Clock   func() time.Time
}

// List serves GET /v1/logs. It answers with a page of entries, or, by preference, with a
// line per matching entry.
func (l *Logs) List(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	search, err := ParseSearch(r, l.Clock())
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	if media := httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeLines, httpapi.TypeCSV); media != httpapi.TypeJSON {
		if r.URL.Query().Get("limit") == "" {
			search.Limit = 0
		}
		return l.Stream(w, r, search, media)
	}
	answer, err := l.Service.Search(r.Context(), who, search)
	if err != nil {
		return NotFound(err, search)
	}
	defer answer.Close()
	w.Header().Set("Content-Type", "application/json")
	page := page{organization: who.Organization, found: answer.Found, next: NextCursor(r, answer.Next), incomplete: answer.Incomplete, read: answer.Read}
	out := httpapi.NewPacedWriter(w)
	answer.AllowEviction(out.Stop)
	return page.write(out)
}

// NotFound is the 404 for a project that the caller can't read; other errors stay.
func NotFound(err error, search ingest.Search) error {
	if errors.Is(err, searches.ErrNoProject) {
		return httpapi.NotFound("project", search.Project)
	}
	return err
}

// selection is what selects entries in a query.
type selection struct {
	filter
	From string `query:"from" description:"Event time, inclusive: 2026-01-31T12:00:00Z, or before now: -15m, -24h, -7d"`
	To   string `query:"to" description:"Event time, exclusive, written like from"`
}

// filter is what selects entries of any time.
type filter struct {
	Project     string   `query:"project" description:"Only this project"`
	Levels      []string `query:"level" enum:"debug,info,warn,error,fatal" description:"Only these levels"`
	Environment string   `query:"environment" description:"The entry's environment, or its key's where it names none"`
	Query       string   `query:"q" description:"What the entries have to match: words of the message, \"phrases\", level:error, any field such as metadata.status:>=500 or exists:metadata.trace_id, -not, OR, parentheses"`
}

// logsQuery is the query of GET /v1/logs.
type logsQuery struct {
	selection
	Order string `query:"order" enum:"desc,asc" default:"desc" description:"By event time"`
	httpapi.Page
}

// ParseSearch parses the query of GET /v1/logs. An invalid parameter is
// a 400 that names it: an ignored filter would show too much.
func ParseSearch(r *http.Request, now time.Time) (ingest.Search, error) {
	if err := openapi.OnlyKnown(r, logsQuery{}); err != nil {
		return ingest.Search{}, err
	}
	if err := httpapi.CursorsReady(r); err != nil {
		return ingest.Search{}, err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return ingest.Search{}, err
	}
	search, err := parseSelection(r.URL.Query(), now)
	if err == nil {
		err = readOrder(&search.OldestFirst, r.URL.Query())
	}
	if err == nil {
		err = readCursor(&search.Start, r, page.Cursor)
	}
	search.Limit = page.Limit
	return search, err
}

// parseSelection reads which entries a query selects.
func parseSelection(query url.Values, now time.Time) (ingest.Search, error) {
	search, err := parseFilter(query)
	if err == nil {
		err = readTime(&search.From, query, "from", now)
	}
	if err == nil {
		err = readTime(&search.To, query, "to", now)
	}
	if err == nil {
		err = checkSpan(&search, query)
	}
	return search, err
}

// parseFilter reads which entries of any time a query selects.
func parseFilter(query url.Values) (ingest.Search, error) {
	search := ingest.Search{Project: query.Get("project"), Environment: query.Get("environment")}
	if err := readLevels(&search.Levels, query); err != nil {
		return search, err
	}
	return search, readQuery(&search.Query, query)
}

func readTime(into **ingest.Instant, query url.Values, name string, now time.Time) error {
	text := query.Get(name)
	if text == "" {
		return nil
	}
	at, ok := ingest.ParseInstant([]byte(text))
	if ago, found := strings.CutPrefix(text, "-"); found {
		var span time.Duration
		span, ok = parseSpan(ago)
		at = ingest.InstantOf(now.Add(-span))
	}
	if !ok {
		return httpapi.Invalid("?"+name, "invalid_timestamp", fmt.Sprintf("%s is %q, not a time.", name, text),
			"Write UTC as 2026-01-31T12:00:00Z, with a fraction of 1 to 9 digits or none, or a time before now as -15m, -24h or -7d.")
	}
	*into = &at
	return nil
}

// parseSpan reads a whole number of seconds, minutes, hours or days: 30s, 5m, 24h, 7d.
func parseSpan(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	unit, known := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	count, err := strconv.ParseUint(text[:len(text)-1], 10, 31)
	span := time.Duration(count) * unit //nolint:gosec // 31 bits
	return span, known && err == nil && span/unit == time.Duration(count)
}

func checkSpan(search *ingest.Search, query url.Values) error {
	if search.From == nil || search.To == nil {
		return nil
	}
	return httpapi.CheckSpan(query, search.From.Time(), search.To.Time())
}

func readLevels(into *ingest.SeveritySet, query url.Values) error {
	for _, text := range query["level"] {
		level, ok := ingest.ParseSeverity([]byte(text))
		if !ok {
			return httpapi.Invalid("?level", "invalid_level", fmt.Sprintf("%q is not a level.", text),
				"Use debug, info, warn, error or fatal; repeat level for several.")
		}
		*into = into.With(level)
	}
	return nil
}

func readQuery(into *ingest.Query, query url.Values) (err error) {
	var fault *ingest.QueryError
	if *into, err = ingest.ParseQuery(query.Get("q")); errors.As(err, &fault) {
		return httpapi.Invalid("?q", httpapi.CodeInvalidRequest, fmt.Sprintf("At character %d of q: %s", fault.At, fault.Detail), fault.Fix)
	}
	return err
}

func readOrder(oldestFirst *bool, query url.Values) error {
	switch order := query.Get("order"); order {
	case "", "desc":
	case "asc":
		*oldestFirst = true
	default:
		return httpapi.Invalid("?order", httpapi.CodeInvalidRequest, fmt.Sprintf("order is %q.", order), "Use desc (newest first) or asc.")
	}
	return nil
}

// A page is the answer to a search, written without a second copy.
type page struct {
	organization string
	found        []ingest.Found
	next         *string
	incomplete   bool
	read         int64 // bytes
}

// pageBody is what a page is written as.
type pageBody struct {
	httpapi.List[foundBody]
	ScannedBytes int64 `json:"scanned_bytes" description:"What was read for the page, unpacked"`
	Incomplete   bool  `json:"incomplete,omitempty" const:"true" description:"The search had its share of time or of bytes before the page was full. What it holds is certain; next_cursor goes on"`
}

type foundBody struct {
	foundHead
	Entry map[string]any `json:"entry" description:"The entry as it was accepted: its text, without insignificant white space, is byte for byte what was sent"`
}

// foundHead are the fields of an item before its entry, which no encoder touches.
type foundHead struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Environment  string    `json:"environment" description:"The entry's own, or that of the key it came with"`
	ReceivedAt   time.Time `json:"received_at"`
}

// A flusher writes at the latest when flushed, and returns every
// earlier failure then.
type flusher interface {
	io.Writer
	Flush() error
}

func (p *page) write(out flusher) error {
	_, _ = io.WriteString(out, `{"items":[`)
	for i := range p.found {
		if i > 0 {
			_, _ = io.WriteString(out, `,`)
		}
		if err := writeItem(out, p.organization, &p.found[i]); err != nil {
			return err
		}
	}
	next, err := json.Marshal(p.next)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, `],"next_cursor":%s,"scanned_bytes":%d`, next, p.read)
	if p.incomplete {
		_, _ = io.WriteString(out, `,"incomplete":true`)
	}
	_, _ = io.WriteString(out, `}`)
	return out.Flush()
}

func writeItem(out io.Writer, organization string, found *ingest.Found) error {
	head, err := json.Marshal(foundHead{
		ID: hex.EncodeToString(found.Batch[:]) + "-" + strconv.Itoa(found.Index), Organization: organization,
		Project: found.Project, Environment: found.Environment, ReceivedAt: found.ReceivedAt,
	})
	if err != nil {
		return err
	}
	_, _ = out.Write(head[:len(head)-1])
	_, _ = io.WriteString(out, `,"entry":`)
	_, _ = out.Write(found.Text)
	_, err = io.WriteString(out, `}`)
	return err
}

// position is the form of a Position in a cursor.
type position struct {
	After   *place `json:"a,omitempty"`
	Seen    *key   `json:"k,omitempty"`
	Leads   []lead `json:"l,omitempty"`
	Horizon *place `json:"h,omitempty"`
	Merges  int64  `json:"m,omitempty"`
}

type place struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Batch   id     `json:"b"`
	Index   int    `json:"i"`
}

type key struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Block   id     `json:"b"`
}

type lead struct {
	Project string `json:"p"`
	Micros  int64  `json:"r"` // of the receipt
	Days    int    `json:"d"` // of its retention
	Block   id     `json:"b"`
}

// id is the id of a batch or a block.
type id [16]byte

// MarshalText writes it as hexadecimal digits.
func (i id) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, i[:]), nil }

// UnmarshalText reads it back.
func (i *id) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(i)) {
		return fmt.Errorf("cannot read id of %d digits", len(text))
	}
	_, err := hex.Decode(i[:], text)
	return err
}

// NextCursor returns the cursor of the page that starts at next; nil for none.
func NextCursor(r *http.Request, next *ingest.Position) *string {
	if next == nil {
		return nil
	}
	at := position{After: placeOf(next.After), Horizon: placeOf(next.Horizon), Merges: next.Merges}
	if seen := next.Seen; seen != nil {
		at.Seen = &key{seen.First.Seconds, seen.First.Nanos, seen.ID}
	}
	for i := range next.Leads {
		ref := &next.Leads[i]
		at.Leads = append(at.Leads, lead{ref.Project, ref.ReceivedAt.UnixMicro(), ref.RetentionDays, ref.ID})
	}
	cursor := httpapi.EncodeCursor(r, at)
	return &cursor
}

func placeOf(p *ingest.Place) *place {
	if p == nil {
		return nil
	}
	return &place{p.Time.Seconds, p.Time.Nanos, p.Batch, p.Index}
}

func readCursor(into *ingest.Position, r *http.Request, cursor string) error {
	if cursor == "" {
		return nil
	}
	var at position
	if err := httpapi.DecodeCursor(r, cursor, &at); err != nil {
		return err
	}
	*into = at.read()
	return nil
}

func (p *position) read() ingest.Position {
	at := ingest.Position{After: p.After.read(), Horizon: p.Horizon.read(), Merges: p.Merges}
	if p.Seen != nil {
		at.Seen = &ingest.Key{First: ingest.Instant{Seconds: p.Seen.Seconds, Nanos: p.Seen.Nanos}, ID: p.Seen.Block}
	}
	for _, l := range p.Leads {
		at.Leads = append(at.Leads, ingest.Ref{Project: l.Project, ReceivedAt: time.UnixMicro(l.Micros).UTC(), RetentionDays: l.Days, ID: l.Block})
	}
	return at
}

func (p *place) read() *ingest.Place {
	if p == nil {
		return nil
	}
	return &ingest.Place{Time: ingest.Instant{Seconds: p.Seconds, Nanos: p.Nanos}, Batch: p.Batch, Index: p.Index}
}
