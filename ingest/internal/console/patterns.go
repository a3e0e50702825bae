package console

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/contract/entryfield"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
)

const (
	maxShown     = 100 // patterns
	patternsView = "patterns"
	patternBytes = 64 << 20 // to read for the patterns of a time
)

// own are the parameters that only the page knows.
var own = []string{"field", "chart", "view", "new", savedParameter}

// patternList are the patterns of the messages that the search finds.
type patternList struct {
	List    []shownPattern
	OnlyNew bool
	All     string    // the address of all
	New     string    // the address of the new ones; empty: the search has no beginning
	Since   []ui.Link // to new ones of other times
	Notes   []string
}

type shownPattern struct {
	Pieces  []ingest.Piece
	Href    string // of its entries; empty: no query finds them
	Entries int64
	Percent string
	Levels  []levelShare // from the bottom up
	New     bool
	Example string
	First   time.Time
	Last    time.Time
}

type levelShare struct {
	Name     string
	Entries  int64
	X, Width string // of a bar that is 100 wide
}

// views are the ways to look at what the search finds.
func (v *view) views() []ui.Link {
	patterns := v.r.URL.Query().Get("view") == patternsView
	return []ui.Link{
		{Text: "Entries", Href: ui.With(v.r, "view", "", "new", ""), Current: !patterns},
		{Text: "Patterns", Href: ui.With(v.r, "view", patternsView), Current: patterns},
	}
}

// lookForPatterns finds patterns, and reports whether there are no entries.
func (v *view) lookForPatterns(*http.Request) (nothing bool, err error) {
	if err := v.chart(nil); err != nil {
		return false, err
	}
	if v.page.Summary.Counted && v.page.Summary.Entries == 0 {
		return true, nil
	}
	return false, v.findPatterns()
}

// findPatterns finds patterns, and marks those that the day before the
// search's time does not have.
func (v *view) findPatterns() error {
	query := v.r.URL.Query()
	list := &patternList{
		OnlyNew: query.Get("new") != "", All: ui.With(v.r, "new", ""),
	}
	for _, time := range []ui.Link{{Text: "hour", Href: "1h"}, {Text: "day", Href: "24h"}} {
		time.Href = ui.With(v.r, "new", "1", "last", time.Href, "from", "", "to", "")
		list.Since = append(list.Since, time)
	}
	var before *ingest.Instant
	if from := v.search.From; from != nil {
		day := from.Plus(-ingesthttp.KnownFor)
		before, list.New = &day, ui.With(v.r, "new", "1")
	}
	found, err := v.Service.Patterns(v.r.Context(), v.who, v.counted(), before, patternBytes)
	if alone, err := v.isAlone(err); alone || err != nil {
		return err
	}
	v.page.Patterns = list
	v.page.Summary.Read += found.Counted.Read
	all, comparable := max(1, found.Counted.Levels.Sum()), true
	if found.Counted.From != nil {
		list.Notes = append(list.Notes, fmt.Sprintf("These are the patterns of the newest %s entries.", ui.Count(all)))
	}
	if found.Uncertain > 0 {
		list.Notes = append(list.Notes, fmt.Sprintf("There are more patterns than can be counted at once: counts can be too low by %s.", ui.Count(found.Uncertain)))
	}
	if earlier := found.Before; earlier != nil {
		v.page.Summary.Read += earlier.Read
		of := "the day before"
		if earlier.From != nil {
			of = "the newest of the day before"
		}
		if many := earlier.Levels.Sum(); many > 0 {
			list.Notes = append(list.Notes, fmt.Sprintf("New is what %s does not have: compared with %s entries.", of, ui.Count(many)))
		} else {
			list.Notes, comparable = append(list.Notes, "The day before has no entries to compare with."), false
		}
	}
	for _, value := range found.Values {
		if len(list.List) < maxShown && (value.Pattern.New || !list.OnlyNew) {
			list.List = append(list.List, v.pattern(&value, all, found.Values[0].Entries, value.Pattern.New && comparable))
		}
	}
	return nil
}

func (v *view) pattern(value *ingest.ValueCount, all, most int64, isNew bool) shownPattern {
	p := value.Pattern
	shown := shownPattern{
		Pieces: p.Pieces(), Entries: value.Entries, Percent: fmt.Sprintf("%.1f %%", 100*float64(value.Entries)/float64(all)),
		New: isNew, Example: p.Example, First: p.First.Time.Time(), Last: p.Last.Time(),
	}
	if search := v.search.Query.And(p.Query()); p.Query() != "" {
		if _, err := ingest.ParseQuery(search); err != nil {
			search = p.Query() // both are too long
		}
		shown.Href = ui.With(v.r, "q", search, "view", "", "new", "")
	}
	x := 0.0
	for level := ingest.SeverityFatal; level > 0; level-- {
		if n := p.Levels[level]; n > 0 {
			width := 100 * float64(n) / float64(max(1, most))
			shown.Levels = append(shown.Levels, levelShare{level.String(), n, fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", width)})
			x += width
		}
	}
	return shown
}

// chartBy divides the chart by the field that the reader has chosen.
func (v *view) chartBy(count ingest.Count) error {
	name := v.r.URL.Query().Get("chart")
	if name == "" || name == entryfield.Level || v.page.Chart == nil {
		return nil
	}
	field, err := ingest.ParseField(name)
	if err != nil {
		return httpapi.Invalid("?chart", httpapi.CodeInvalidRequest, fmt.Sprintf("%q is not the name of a field.", name), "Name one, such as service.")
	}
	count.By = []ingest.Field{field}
	counted, ok, err := v.count(count, ui.MostSeries)
	if !ok {
		return err
	}
	buckets := make([]map[string]int64, len(counted.Buckets))
	rest, all := ui.SeriesClass(ui.MostSeries), counted.Levels.Sum()
	for i, levels := range counted.Buckets {
		buckets[i] = map[string]int64{rest: levels.Sum()}
	}
	var parts []ui.Series
	for i, value := range counted.Fields[0].Values {
		series := ui.Series{Class: ui.SeriesClass(i), Name: value.Value}
		if name == ingest.FieldProject {
			series.Name = v.Directory.Name(value.Value)
		}
		series.Name, _ = beginning(series.Name, maxValue)
		parts = append(parts, series)
		all -= value.Entries
		for at, entries := range value.Buckets {
			buckets[at][series.Class] = entries
			buckets[at][rest] = max(0, buckets[at][rest]-entries) // an entry with two values is in both
		}
	}
	if all > 0 {
		parts = append(parts, ui.Series{Class: rest, Name: "others or none"})
	}
	v.page.Chart = ui.NewHistogram(v.r, "entries", time.Unix(count.FirstBucket(), 0), count.Every, parts, buckets)
	v.page.Chart.Of, v.page.ByLevel = name, ui.With(v.r, "chart", "")
	if counted.From != nil {
		v.page.Chart.Note = fmt.Sprintf("Only the newest %s entries are in the chart.", ui.Count(counted.Levels.Sum()))
	}
	return nil
}
