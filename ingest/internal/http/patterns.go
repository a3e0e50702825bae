package http

import (
	"cmp"
	"encoding/csv"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// defaultPatterns is how many patterns are returned.
const defaultPatterns = 50

// KnownFor is how many seconds before a time what is new then is looked for.
const KnownFor = 86400

// patternsQuery is the query of GET /v1/logs/patterns.
type patternsQuery struct {
	selection
	Since string `query:"since" description:"Only what is new since this time, written like from: patterns that no entry between from and since has. Without from, it is compared with the day before"`
	Top   int    `query:"top" default:"50" minimum:"1" maximum:"100" description:"How many patterns, the most frequent first"`
}

// Patterns serves GET /v1/logs/patterns: what the messages have in common.
func (l *Logs) Patterns(w http.ResponseWriter, r *http.Request) error {
	if err := openapi.OnlyKnown(r, patternsQuery{}); err != nil {
		return err
	}
	query := r.URL.Query()
	search, err := parseSelection(query, l.Clock())
	if err != nil {
		return err
	}
	before, err := readSince(&search, query, l.Clock())
	if err != nil {
		return err
	}
	top, err := readTop(cmp.Or(query.Get("top"), strconv.Itoa(defaultPatterns)))
	if err != nil {
		return err
	}
	found, err := l.Service.Patterns(r.Context(), identity.FromContext(r.Context()), search, before, 0)
	if err != nil {
		return NotFound(err, search)
	}
	w.Header().Set("Vary", "Accept")
	body := patternsOf(&found, top)
	if httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeCSV) == httpapi.TypeCSV {
		w.Header().Set("Content-Type", httpapi.TypeCSV)
		w.Header().Set(trailerIncomplete, strconv.FormatBool(body.Incomplete || body.Compared != nil && body.Compared.Incomplete))
		out := httpapi.NewPacedWriter(w)
		if err := body.writeCSV(csv.NewWriter(out)); err != nil {
			return err
		}
		return out.Flush()
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}

// readSince has the search begin at since, and returns from when on entries
// are compared with it; nil: none are.
func readSince(search *ingest.Search, query url.Values, now time.Time) (before *ingest.Instant, err error) {
	var since *ingest.Instant
	if err := readTime(&since, query, "since", now); err != nil || since == nil {
		return nil, err
	}
	if before = search.From; before == nil {
		day := since.Plus(-KnownFor)
		before = &day
	}
	if before.Compare(*since) >= 0 || search.To != nil && since.Compare(*search.To) >= 0 {
		return nil, httpapi.Invalid("?since", httpapi.CodeInvalidRequest, "since is not between from and to.", "Name a time after from and before to.")
	}
	search.From = since
	return before, nil
}

// patternsBody is the answer with patterns.
type patternsBody struct {
	Patterns     []patternBody `json:"patterns" description:"The most frequent first; with since, only new ones"`
	Entries      int64         `json:"entries" description:"How many were looked at"`
	Without      int64         `json:"without" description:"Entries without a message"`
	Uncertain    int64         `json:"uncertain,omitempty" description:"By how much an entries can be too low, as there were more patterns than are counted at once; one that is not listed has no more entries than this, or than the last that is"`
	Compared     *comparedBody `json:"compared,omitempty" description:"With since: the entries before it that patterns were looked for in"`
	Incomplete   bool          `json:"incomplete,omitempty" const:"true" description:"The search had its share of time or of bytes before all was read: these are the patterns of a part"`
	ExactAfter   *time.Time    `json:"exact_after,omitempty" description:"Where incomplete: what is newer is counted in full"`
	ScannedBytes int64         `json:"scanned_bytes" description:"What was read, unpacked"`
}

type comparedBody struct {
	Entries    int64      `json:"entries"`
	Uncertain  int64      `json:"uncertain,omitempty" description:"A pattern with no more entries than this may have been missed: it is not new then"`
	Incomplete bool       `json:"incomplete,omitempty" const:"true" description:"Not all of them were read: a pattern may be older than it seems"`
	ExactAfter *time.Time `json:"exact_after,omitempty" description:"Where incomplete: what is newer was read"`
}

type patternBody struct {
	Pattern   string           `json:"pattern" description:"The message, with <num>, <time>, <ip>, <email>, <id> or <*> for what differs"`
	Entries   int64            `json:"entries"`
	Share     float64          `json:"share" description:"Of the entries that were looked at, from 0 to 1"`
	Levels    map[string]int64 `json:"levels"`
	FirstSeen time.Time        `json:"first_seen"`
	LastSeen  time.Time        `json:"last_seen"`
	Example   exampleBody      `json:"example" description:"The first entry"`
	Query     string           `json:"query" description:"What q of GET /v1/logs finds all of these entries with, and few others; empty for a pattern without a word"`
}

type exampleBody struct {
	ID      string `json:"id"`
	Message string `json:"message" description:"Its message, or the first 256 bytes"`
}

func patternsOf(found *searches.Patterns, top int) *patternsBody {
	body := &patternsBody{
		Patterns: []patternBody{}, Entries: found.Counted.Levels.Sum(), Without: found.Without, Uncertain: found.Uncertain, ScannedBytes: found.Counted.Read,
	}
	body.Incomplete, body.ExactAfter = partOf(&found.Counted)
	if before := found.Before; before != nil {
		body.ScannedBytes += before.Read
		body.Compared = &comparedBody{Entries: before.Levels.Sum(), Uncertain: before.Fields[0].Uncertain}
		body.Compared.Incomplete, body.Compared.ExactAfter = partOf(before)
	}
	for _, value := range found.Values {
		p := value.Pattern
		if len(body.Patterns) == top || found.Before != nil && !p.New {
			continue
		}
		body.Patterns = append(body.Patterns, patternBody{
			Pattern: value.Value, Entries: value.Entries, Share: float64(value.Entries) / float64(max(1, body.Entries)), Levels: p.Levels.ByName(),
			FirstSeen: p.First.Time.Time(), LastSeen: p.Last.Time(), Query: p.Query(),
			Example: exampleBody{hex.EncodeToString(p.First.Batch[:]) + "-" + strconv.Itoa(p.First.Index), p.Example},
		})
	}
	return body
}

// partOf reports whether not all was counted, and what was.
func partOf(counted *ingest.Counted) (incomplete bool, exactAfter *time.Time) {
	if counted.From == nil {
		return false, nil
	}
	at := counted.From.Time()
	return true, &at
}

func (b *patternsBody) writeCSV(table *csv.Writer) error {
	_ = table.Write([]string{"pattern", "entries", "share", "debug", "info", "warn", "error", "fatal", "first_seen", "last_seen", "example", "query"})
	for _, p := range b.Patterns {
		row := []string{httpapi.CSVText(p.Pattern), strconv.FormatInt(p.Entries, 10), strconv.FormatFloat(p.Share, 'g', 4, 64)}
		for _, level := range []string{"debug", "info", "warn", "error", "fatal"} {
			row = append(row, strconv.FormatInt(p.Levels[level], 10))
		}
		_ = table.Write(append(row, p.FirstSeen.Format(time.RFC3339Nano), p.LastSeen.Format(time.RFC3339Nano),
			httpapi.CSVText(p.Example.Message), httpapi.CSVText(p.Query)))
	}
	table.Flush()
	return table.Error()
}
