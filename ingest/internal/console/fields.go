package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract/entryfield"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
)

const (
	maxFields = 4 // that a reader can pick
	maxValues = 8 // of a field beside the list
)

// usualFields are counted beside the list, where entries have them.
var usualFields = []string{entryfield.Level, entryfield.Environment, ingest.FieldProject, service, "host", "error.type"}

// service is the field that says who logged an entry.
const service = "service"

// A facet is a field with its most frequent values.
type facet struct {
	Name   string
	Picked bool
	Toggle string // the address with the field picked, or no longer; empty: enough are picked
	Chart  string // the address with the chart by it; empty: it is
	Values []facetValue
	Of     string // how many entries it is counted of, where that is not all
}

type facetValue struct {
	Text    string
	Count   int64
	Percent int
	Only    string // the address of entries with it; empty: there is none
	Without string
}

// pickedFields are those of the parameter field.
func pickedFields(r *http.Request) (fields []ingest.Field, err error) {
	names := slices.DeleteFunc(slices.Clone(r.URL.Query()["field"]), func(name string) bool { return name == "" })
	if len(names) > maxFields {
		return nil, httpapi.Invalid("?field", httpapi.CodeInvalidRequest, fmt.Sprintf("%d fields are picked.", len(names)),
			fmt.Sprintf("Pick at most %d.", maxFields))
	}
	for _, name := range names {
		field, err := ingest.ParseField(name)
		if err != nil {
			return nil, httpapi.Invalid("?field", httpapi.CodeInvalidRequest, fmt.Sprintf("%q is not the name of a field.", name), "Name one, such as metadata.user.id.")
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// facets counts the usual fields and those that are picked.
func (v *view) facets() error {
	if len(v.page.Entries) == 0 {
		return nil
	}
	count := ingest.Count{Search: v.counted(), MaxBytes: fieldBytes}
	count.By = slices.Clone(v.fields)
	for _, name := range usualFields {
		field, err := ingest.ParseField(name)
		if err != nil {
			return err
		}
		known := name == ingest.FieldProject && v.search.Project != "" || v.picked(name)
		if !known && len(count.By) < ingest.MaxCountFields {
			count.By = append(count.By, field)
		}
	}
	counted, ok, err := v.count(count, maxValues)
	if !ok {
		return err
	}
	for i := range counted.Fields {
		if f := v.facet(&counted.Fields[i], &counted); f.Picked || len(f.Values) > 1 || len(f.Values) == 1 && counted.Fields[i].Without > 0 {
			v.page.Facets = append(v.page.Facets, f)
		}
	}
	return nil
}

func (v *view) facet(of *ingest.FieldCounts, counted *ingest.Counted) facet {
	f := facet{Name: of.Field.String()}
	if f.Picked = v.picked(f.Name); f.Picked || len(v.fields) < maxFields {
		f.Toggle = v.toggled(f.Name)
	}
	if v.r.URL.Query().Get("chart") != f.Name && v.search.From != nil && f.Name != entryfield.Level {
		f.Chart = ui.With(v.r, "chart", f.Name)
	}
	all := max(1, counted.Levels.Sum())
	if counted.From != nil {
		f.Of = fmt.Sprintf("of the newest %s", ui.Count(all))
	}
	for _, value := range of.Values {
		shown := facetValue{Text: value.Value, Count: value.Entries, Percent: int(100 * value.Entries / all)}
		switch term, ok := ingest.Term(f.Name, value.Value); {
		case f.Name == ingest.FieldProject:
			shown.Text, shown.Only = v.Directory.Name(value.Value), ui.With(v.r, "project", value.Value)
		case ok:
			shown.Only, shown.Without = ui.With(v.r, "q", v.search.Query.And(term)), ui.With(v.r, "q", v.search.Query.And("-"+term))
		}
		shown.Text, _ = beginning(shown.Text, maxValue)
		f.Values = append(f.Values, shown)
	}
	return f
}

func (v *view) picked(name string) bool {
	return slices.ContainsFunc(v.fields, func(field ingest.Field) bool { return field.String() == name })
}

// toggled is the address with a field picked, or no longer.
func (v *view) toggled(name string) string {
	query := v.r.URL.Query()
	picked := slices.DeleteFunc(slices.Clone(query["field"]), func(other string) bool { return other == name || other == "" })
	if len(picked) == len(query["field"]) {
		picked = append(picked, name)
	}
	query.Del("cursor")
	query["field"] = picked
	if len(picked) == 0 {
		query.Del("field")
	}
	address := url.URL{Path: v.r.URL.Path, RawQuery: query.Encode()}
	return address.String()
}
