package http

import (
	"encoding/csv"

	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// defaultTop is how many values of a field are returned.
const defaultTop = 10

// statsQuery is the query of GET /v1/logs/stats.
type statsQuery struct {
	selection
	Every string   `query:"every" description:"Count in buckets of this width, in whole seconds, minutes, hours or days: 30s, 5m, 1h, 1d; or auto: about 60 buckets of a usual width. Needs from; at most 1000 buckets"`
	By    []string `query:"by" description:"Count by the values of this field: level, environment, project, message.pattern, or any field such as metadata.service. Repeat it for several, at most 8, or 2 beside every or of"`
	Of    string   `query:"of" description:"Sum up the numbers in this field, such as metadata.ms, with their quantiles"`
	Top   int      `query:"top" default:"10" minimum:"1" maximum:"100" description:"How many values of each field, the most frequent first"`
}

// Stats serves GET /v1/logs/stats: how many entries match.
func (l *Logs) Stats(w http.ResponseWriter, r *http.Request) error {
	if err := openapi.OnlyKnown(r, statsQuery{}); err != nil {
		return err
	}
	count, top, err := ParseCount(r.URL.Query(), l.Clock())
	if err != nil {
		return err
	}
	counted, err := l.Service.Count(r.Context(), identity.FromContext(r.Context()), count, top)
	if err != nil {
		return NotFound(err, count.Search)
	}
	w.Header().Set("Vary", "Accept")
	body := statsOf(&count, &counted)
	if httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeCSV) == httpapi.TypeCSV {
		w.Header().Set("Content-Type", httpapi.TypeCSV)
		w.Header().Set(trailerIncomplete, strconv.FormatBool(body.Incomplete))
		if body.ExactAfter != nil {
			w.Header().Set("Weir-Exact-After", body.ExactAfter.Format(time.RFC3339Nano))
		}
		out := httpapi.NewPacedWriter(w)
		if err := body.writeCSV(csv.NewWriter(out)); err != nil {
			return err
		}
		return out.Flush()
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}

// ParseCount parses the query of GET /v1/logs/stats.
func ParseCount(query url.Values, now time.Time) (count ingest.Count, top int, err error) {
	if count.Search, err = parseSelection(query, now); err != nil {
		return count, 0, err
	}
	if count.Every, err = readEvery(&count.Search, query.Get("every"), now); err != nil {
		return count, 0, err
	}
	if many := count.Buckets(); many > ingest.MaxBuckets {
		return count, 0, httpapi.Invalid("?every", httpapi.CodeInvalidRequest, fmt.Sprintf("every is %q, which makes %d buckets.", query.Get("every"), many),
			fmt.Sprintf("Use a width that makes at most %d, or auto.", ingest.MaxBuckets))
	}
	if name := query.Get("of"); name != "" {
		if err := readField(&count.Of, "of", name); err != nil {
			return count, 0, err
		}
	}
	if err := readBy(&count, query["by"]); err != nil {
		return count, 0, err
	}
	top, err = readTop(query.Get("top"))
	return count, top, err
}

func readBy(count *ingest.Count, names []string) error {
	most, beside := ingest.MaxCountFields, ""
	if count.Split() {
		most, beside = ingest.MaxSplitFields, " beside every or of"
	}
	if len(names) > most {
		return httpapi.Invalid("?by", httpapi.CodeInvalidRequest, fmt.Sprintf("by is there %d times.", len(names)),
			fmt.Sprintf("Use at most %d fields%s.", most, beside))
	}
	count.By = make([]ingest.Field, len(names))
	for i, name := range names {
		if err := readField(&count.By[i], "by", name); err != nil {
			return err
		}
	}
	return nil
}

func readField(into *ingest.Field, parameter, name string) (err error) {
	if *into, err = ingest.ParseField(name); err != nil {
		return httpapi.Invalid("?"+parameter, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q, not the name of a field.", parameter, name),
			"Name one field, such as level, metadata.service or error.type.")
	}
	return nil
}

func readTop(text string) (int, error) {
	if text == "" {
		return defaultTop, nil
	}
	top, err := strconv.Atoi(text)
	if err != nil || top < 1 || top > ingest.MaxValues {
		return 0, httpapi.Invalid("?top", httpapi.CodeInvalidRequest, fmt.Sprintf("top is %q.", text), fmt.Sprintf("Use a number from 1 to %d.", ingest.MaxValues))
	}
	return top, nil
}

// readEvery reads the width of buckets. They need a beginning, and end now
// where the query names no end.
func readEvery(search *ingest.Search, text string, now time.Time) (every time.Duration, err error) {
	if text == "" {
		return 0, nil
	}
	if search.From == nil {
		return 0, httpapi.Invalid("?every", httpapi.CodeInvalidRequest, "every needs a beginning.", "Name it with from, such as from=-24h.")
	}
	if search.To == nil {
		end := ingest.InstantOf(now)
		search.To = &end
	}
	every, ok := parseSpan(text)
	if text == "auto" {
		return AutoWidth(search.To.Seconds - search.From.Seconds), nil
	}
	if !ok || every == 0 {
		return 0, httpapi.Invalid("?every", httpapi.CodeInvalidRequest, fmt.Sprintf("every is %q, not a width of buckets.", text),
			"Use whole seconds, minutes, hours or days, such as 30s, 5m, 1h or 1d, or auto.")
	}
	return every, nil
}

// autoBuckets is about how many bars a chart can show.
const autoBuckets = 60

// widths are the usual widths of buckets, in seconds.
var widths = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400}

// AutoWidth is a usual width of which about autoBuckets cover a number
// of seconds; whole days beyond these.
func AutoWidth(seconds int64) time.Duration {
	for _, width := range widths {
		if seconds <= width*autoBuckets {
			return time.Duration(width) * time.Second
		}
	}
	const day = 86400
	days := (seconds + day*autoBuckets - 1) / (day * autoBuckets)
	return time.Duration(days) * 24 * time.Hour
}

// statsBody is the answer to a count.
type statsBody struct {
	Entries      int64            `json:"entries" description:"How many match"`
	Levels       map[string]int64 `json:"levels" description:"How many of each level, without levels that have none"`
	Numbers      *numbersBody     `json:"numbers,omitempty" description:"Of the numbers in the field that of names; absent where there are none"`
	EverySeconds int64            `json:"every_seconds,omitempty" description:"The width of a bucket"`
	Buckets      []bucketBody     `json:"buckets,omitempty" description:"In order, with those that have no entries"`
	Fields       []fieldBody      `json:"fields,omitempty" description:"In the order of by"`
	Incomplete   bool             `json:"incomplete,omitempty" const:"true" description:"The count had its share of time or of bytes before all was counted: the numbers are those of a part"`
	ExactAfter   *time.Time       `json:"exact_after,omitempty" description:"Where incomplete: what is newer is counted in full"`
	ScannedBytes int64            `json:"scanned_bytes" description:"What was read for the count, unpacked"`
}

type bucketBody struct {
	At      time.Time        `json:"at" description:"When the bucket begins"`
	Entries int64            `json:"entries"`
	Levels  map[string]int64 `json:"levels"`
}

type fieldBody struct {
	Field     string      `json:"field"`
	Values    []valueBody `json:"values" description:"The most frequent first. An entry counts for each value that an array has, at most 64"`
	Without   int64       `json:"without" description:"Entries that have no value there, or only one of more than 256 bytes"`
	Uncertain int64       `json:"uncertain,omitempty" description:"By how much an entries can be too low, as there were more values than are counted at once; a value that is not listed has no more entries than this, or than the last that is"`
}

type valueBody struct {
	Value   string       `json:"value"`
	Entries int64        `json:"entries"`
	Buckets []int64      `json:"buckets,omitempty" description:"Entries in each bucket"`
	Numbers *numbersBody `json:"numbers,omitempty"`
}

// numbersBody are the numbers of a field.
type numbersBody struct {
	Count int64   `json:"count"`
	Sum   float64 `json:"sum"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	P50   float64 `json:"p50" description:"The median, within 2 % of its value"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
}

func statsOf(count *ingest.Count, counted *ingest.Counted) *statsBody {
	body := &statsBody{
		Entries: counted.Levels.Sum(), Levels: counted.Levels.ByName(), Numbers: numbersOf(counted.Numbers),
		EverySeconds: int64(count.Every / time.Second), ScannedBytes: counted.Read,
	}
	for i, levels := range counted.Buckets {
		at := time.Unix(count.FirstBucket()+int64(i)*body.EverySeconds, 0).UTC()
		if at.Year() < 0 { // which JSON can't write
			at = count.Search.From.Time()
		}
		body.Buckets = append(body.Buckets, bucketBody{At: at, Entries: levels.Sum(), Levels: levels.ByName()})
	}
	for _, field := range counted.Fields {
		shown := fieldBody{Field: field.Field.String(), Values: []valueBody{}, Without: field.Without, Uncertain: field.Uncertain}
		for _, value := range field.Values {
			shown.Values = append(shown.Values, valueBody{value.Value, value.Entries, value.Buckets, numbersOf(value.Numbers)})
		}
		body.Fields = append(body.Fields, shown)
	}
	body.Incomplete, body.ExactAfter = partOf(counted)
	return body
}

func numbersOf(numbers *ingest.Numbers) *numbersBody {
	if numbers == nil || numbers.Count == 0 {
		return nil
	}
	return &numbersBody{
		numbers.Count, numbers.Sum, numbers.Min, numbers.Max,
		numbers.Quantile(0.5), numbers.Quantile(0.9), numbers.Quantile(0.95), numbers.Quantile(0.99),
	}
}

// writeCSV writes a row for each value, and each bucket of it; without
// fields for each level.
func (s *statsBody) writeCSV(table *csv.Writer) error {
	_ = table.Write([]string{"at", "field", "value", "entries", "count", "sum", "min", "max", "p50", "p90", "p95", "p99"})
	row := func(at, field, value string, entries int64, numbers *numbersBody) {
		_ = table.Write(append([]string{at, httpapi.CSVText(field), httpapi.CSVText(value), strconv.FormatInt(entries, 10)}, numbers.cells()...))
	}
	for _, field := range s.Fields {
		for _, value := range field.Values {
			if value.Buckets == nil || value.Numbers != nil {
				row("", field.Field, value.Value, value.Entries, value.Numbers)
			}
			for i, entries := range value.Buckets {
				row(s.Buckets[i].At.Format(time.RFC3339), field.Field, value.Value, entries, nil)
			}
		}
	}
	if len(s.Fields) == 0 {
		levels := func(at string, of map[string]int64) {
			for _, level := range slices.Sorted(maps.Keys(of)) {
				row(at, "level", level, of[level], nil)
			}
		}
		for _, bucket := range s.Buckets {
			levels(bucket.At.Format(time.RFC3339), bucket.Levels)
		}
		if s.Buckets == nil {
			levels("", s.Levels)
		}
		if s.Numbers != nil {
			row("", "", "", s.Entries, s.Numbers)
		}
	}
	table.Flush()
	return table.Error()
}

func (n *numbersBody) cells() []string {
	if n == nil {
		return make([]string, 8)
	}
	cells := []string{strconv.FormatInt(n.Count, 10)}
	for _, number := range []float64{n.Sum, n.Min, n.Max, n.P50, n.P90, n.P95, n.P99} {
		cells = append(cells, strconv.FormatFloat(number, 'g', -1, 64))
	}
	return cells
}
