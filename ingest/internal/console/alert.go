package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

type alertPage struct {
	ID      string
	Search  ingest.SavedSearch
	Open    string // the address of the search
	Whole   string
	Set     bool // there is an alert
	Alert   postgres.Alert
	Rule    string // in words
	Tone    string
	Muted   bool
	Chart   *alertChart
	Changes []shownEvaluation
	All     []shownEvaluation
	May     bool // the reader may change it
	Private bool // only a shared search has one
	Form    ruleForm
	Mute    ui.Field
	Fault   string
}

type shownEvaluation struct {
	postgres.Evaluated
	Open string // the address of its entries
	Tone string
	Told string
}

// A ruleForm is the form of an alert's rule.
type ruleForm struct {
	Fields  []ui.Field
	Mail    ui.Checks
	Version int64
	Fault   string // of what has no field of its own
}

// spans are the times to choose from.
var spans = []struct {
	of   time.Duration
	text string
}{
	{time.Minute, "1 minute"}, {5 * time.Minute, "5 minutes"}, {15 * time.Minute, "15 minutes"}, {time.Hour, "1 hour"}, {6 * time.Hour, "6 hours"},
	{24 * time.Hour, "1 day"}, {7 * 24 * time.Hour, "7 days"},
}

// spanText is a time in words, such as 5 minutes.
func spanText(of time.Duration) string {
	for _, span := range spans {
		if span.of == of {
			return span.text
		}
	}
	return of.String()
}

// spanField chooses a time from least to most, with the value that it has.
func spanField(name, label, before string, value, least, most time.Duration) ui.Field {
	var choices [][2]string
	known := value == 0
	if least == 0 {
		choices = append(choices, [2]string{"0", "each time it fires"})
	}
	for _, span := range spans {
		if span.of >= least && span.of <= most {
			choices = append(choices, [2]string{seconds(span.of), before + span.text})
			known = known || span.of == value
		}
	}
	if !known {
		choices = append(choices, [2]string{seconds(value), before + value.String()})
	}
	return ui.Field{Name: name, Label: label, Choices: ui.NewChoices(seconds(value), choices...)}
}

func seconds(of time.Duration) string { return strconv.FormatInt(int64(of/time.Second), 10) }

// defaultRule is what a new alert begins with.
func defaultRule(who identity.Principal) ingest.AlertRule {
	return ingest.AlertRule{Every: 5 * time.Minute, Window: 5 * time.Minute, Threshold: 10, Times: 1, Quiet: time.Hour, Members: []string{who.Member}}
}

func newRuleForm(rule ingest.AlertRule, version int64, mail ui.Checks, fault error) ruleForm {
	condition := "more"
	if rule.Fewer {
		condition = "fewer"
	}
	number := func(name, label, hint string, value int64) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "number", Value: strconv.FormatInt(value, 10), Required: true, Hint: hint}
	}
	form := ruleForm{Version: version, Mail: mail, Fields: []ui.Field{
		{Name: "condition", Label: "It fires when there are", Choices: ui.NewChoices(condition, [2]string{"more", "more than"}, [2]string{"fewer", "fewer than"})},
		number("threshold", "Entries", "Fewer than 1: nothing came.", rule.Threshold),
		spanField("window", "In the last", "", rule.Window, ingest.MinAlertSpan, ingest.MaxAlertWindow),
		spanField("every", "Looked at every", "", rule.Every, ingest.MinAlertSpan, ingest.MaxAlertEvery),
		number("times", "In a row", "How many times it has to be so before it fires.", int64(rule.Times)),
		spanField("quiet", "Told at most", "once in ", rule.Quiet, 0, ingest.MaxAlertQuiet),
		{Name: "examples", Label: "Messages of entries", Choices: ui.NewChoices(strconv.Itoa(rule.Examples), [2]string{"0", "none are sent along"},
			[2]string{"1", "1 is sent along"}, [2]string{"2", "2 are sent along"}, [2]string{"3", "3 are sent along"}),
			Hint: "They go wherever webhooks and mail go: messages may hold secrets."},
	}}
	var invalid ingest.Invalid
	if errors.As(fault, &invalid) {
		form.Fault = invalid.Error()
		for i := range form.Fields {
			if form.Fields[i].Name == invalid.Field {
				form.Fields[i].Fault, form.Fault = form.Fault, ""
			}
		}
	}
	return form
}

// ruleIn reads the form of a rule.
func ruleIn(r *http.Request) (rule ingest.AlertRule) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(r.PostForm.Get(name)), 10, 64)
		if err != nil {
			return -1 // which is none of any field
		}
		return n
	}
	span := func(name string) time.Duration { return time.Duration(min(number(name), 1<<30)) * time.Second }
	rule = ingest.AlertRule{
		Every: span("every"), Window: span("window"), Quiet: span("quiet"), Fewer: r.PostForm.Get("condition") == "fewer", Threshold: number("threshold"),
		Times: int(min(number("times"), 1000)), Examples: int(min(number("examples"), 1000)),
	}
	rule.Roles, rule.Members = ui.MailIn(r)
	return rule
}

// inWords says what a rule does.
func inWords(r *ingest.AlertRule) string {
	than := "more"
	if r.Fewer {
		than = "fewer"
	}
	words := fmt.Sprintf("It fires when there are %s than %s entries in the last %s; looked at every %s.",
		than, ui.Count(r.Threshold), spanText(r.Window), spanText(r.Every))
	if r.Times > 1 {
		words += fmt.Sprintf(" It has to be so %d times in a row.", r.Times)
	}
	if r.Quiet > 0 {
		words += fmt.Sprintf(" Told at most once in %s.", spanText(r.Quiet))
	}
	return words
}

// alertPages are the pages of alerts on saved searches.
type alertPages struct {
	saved *saved.Service
	pages *ui.Pages
	clock func() time.Time
}

func (a *alertPages) mount(r chi.Router) {
	const of = searchesPath + "/{id}/alert"
	r.Get(of, a.pages.Handle(a.show))
	r.Post(of, a.pages.Handle(a.set))
	r.Post(of+"/mute", a.pages.Handle(a.mute))
	r.Post(of+"/test", a.pages.Handle(a.test))
	r.Post(of+"/delete", a.pages.Handle(a.delete))
}

func (a *alertPages) show(w http.ResponseWriter, r *http.Request) error {
	return a.write(w, r, http.StatusOK, nil, nil)
}

// write shows the alert of a search, with the rule that somebody has
// sent and what is wrong with it, if any.
func (a *alertPages) write(w http.ResponseWriter, r *http.Request, status int, sent *ingest.AlertRule, fault error) error {
	id, who := chi.URLParam(r, "id"), identity.FromContext(r.Context())
	search, err := a.saved.Find(r.Context(), who, id)
	if err != nil {
		return ingesthttp.SavedProblem(err, id)
	}
	page := alertPage{
		ID: id, Search: search, Open: path + "?" + search.Address().Encode(), Whole: search.Whole(),
		May: saved.MayShare(who) && search.Owner == "", Private: search.Owner != "",
		Mute: ui.Field{Name: "for", Label: "Tell nothing for", Choices: ui.NewChoices("3600", [2]string{"3600", "an hour"}, [2]string{"14400", "4 hours"},
			[2]string{"86400", "a day"}, [2]string{"604800", "a week"})},
	}
	rule := defaultRule(who)
	page.Alert, err = a.saved.Alert(r.Context(), who, id)
	switch {
	case err == nil:
		page.Set, rule, page.Tone = true, page.Alert.AlertRule, tones[page.Alert.State]
		page.Rule, page.Muted = inWords(&rule), page.Alert.MutedUntil.After(a.clock())
		if err := a.addHistory(r, &page); err != nil {
			return err
		}
	case !errors.Is(err, postgres.ErrNoAlert):
		return ingesthttp.SavedProblem(err, id)
	}
	if sent != nil && !errors.Is(fault, postgres.ErrSearchChanged) {
		rule = *sent
	}
	page.Form = newRuleForm(rule, page.Alert.Version, ui.MailChecks(a.saved.Directory, who, identity.ReadLogs, rule.Roles, rule.Members), fault)
	if errors.Is(fault, postgres.ErrSearchChanged) {
		page.Fault = "Somebody else has changed this alert meanwhile, to what you see here. Nothing of yours was saved."
	}
	a.pages.Write(w, r, status, "alert", ui.View{Title: search.Name, Data: page, Flash: ui.TakeFlash(w, r, savedFlashes)})
	return nil
}

func (a *alertPages) addHistory(r *http.Request, page *alertPage) error {
	all, changes, err := a.saved.History(r.Context(), identity.FromContext(r.Context()), page.ID)
	if err != nil {
		return ingesthttp.SavedProblem(err, page.ID)
	}
	page.Chart = newAlertChart(&page.Alert.AlertRule, all)
	for _, e := range all {
		page.All = append(page.All, page.shown(e))
	}
	for _, e := range changes {
		page.Changes = append(page.Changes, page.shown(e))
	}
	return nil
}

func (p *alertPage) shown(e postgres.Evaluated) shownEvaluation {
	notice := ingest.Notice{Search: p.Search, Rule: p.Alert.AlertRule, Of: e.Evaluation}
	shown := shownEvaluation{Evaluated: e, Open: path + "?" + notice.Address().Encode(), Tone: tones[e.State]}
	switch {
	case e.Told:
		shown.Told = "told"
	case e.Held == ingest.HeldMuted:
		shown.Told = "held back: it was muted"
	case e.Held == ingest.HeldQuiet:
		shown.Told = "held back: firing was told not long before"
	}
	return shown
}

func (a *alertPages) set(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	rule := ruleIn(r)
	version, _ := strconv.ParseInt(r.PostForm.Get("version"), 10, 64) // 0: a new one
	_, err := a.saved.SetAlert(r.Context(), identity.FromContext(r.Context()), id, rule, version)
	var invalid ingest.Invalid
	switch {
	case errors.As(err, &invalid):
		return a.write(w, r, http.StatusUnprocessableEntity, &rule, err)
	case errors.Is(err, postgres.ErrSearchChanged):
		return a.write(w, r, http.StatusConflict, &rule, err)
	case err != nil:
		return ingesthttp.SavedProblem(err, id)
	}
	return done(w, r, "alert-set", r.URL.Path)
}

// changed answers a form of an alert's page.
func (a *alertPages) changed(w http.ResponseWriter, r *http.Request, err error, flash string) error {
	id := chi.URLParam(r, "id")
	if err != nil {
		return ingesthttp.SavedProblem(err, id)
	}
	return done(w, r, flash, searchesPath+"/"+id+"/alert")
}

func (a *alertPages) mute(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	until, flash := time.Time{}, "alert-unmuted"
	if span, err := strconv.Atoi(r.PostForm.Get("for")); err == nil && span > 0 && span <= 365*24*3600 {
		until, flash = a.clock().UTC().Add(time.Duration(span)*time.Second), "alert-muted"
	}
	_, err := a.saved.Mute(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "id"), until)
	return a.changed(w, r, err, flash)
}

func (a *alertPages) test(w http.ResponseWriter, r *http.Request) error {
	return a.changed(w, r, a.saved.Test(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "id")), "alert-tested")
}

func (a *alertPages) delete(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	version, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64)
	if err != nil || version < 1 {
		return a.changed(w, r, postgres.ErrSearchChanged, "")
	}
	return a.changed(w, r, a.saved.DeleteAlert(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "id"), version), "alert-deleted")
}

// The drawing of evaluations in its own units; the page scales it.
const (
	chartWidth  = 1200
	chartHeight = 60
	chartBars   = 120
)

// An alertChart shows what the newest evaluations have counted.
type alertChart struct {
	Label     string
	Bars      []alertBar
	Threshold int // how far it is from the top
	Max       int64
	From, To  time.Time
}

type alertBar struct {
	Level, Text         string
	X, Y, Width, Height int
}

// newAlertChart draws evaluations, the newest of which is the first; nil
// without any.
func newAlertChart(rule *ingest.AlertRule, all []postgres.Evaluated) *alertChart {
	if len(all) == 0 {
		return nil
	}
	chart := &alertChart{Max: max(1, rule.Threshold), From: all[len(all)-1].At, To: all[0].At}
	for _, e := range all {
		chart.Max = max(chart.Max, e.Entries)
	}
	const step = chartWidth / chartBars
	height := func(entries int64) int { return int(float64(entries) / float64(chart.Max) * (chartHeight - 2)) }
	for i, e := range slices.Backward(all) {
		bar := alertBar{Level: "info", X: (chartBars - 1 - i) * step, Width: step - 1, Height: max(1, height(e.Entries))}
		bar.Text = fmt.Sprintf("%s: %s entries", ui.Instant(e.At), ui.Count(e.Entries))
		switch e.Judgement {
		case ingest.Met:
			bar.Level, bar.Text = "error", bar.Text+", the condition is met"
		case ingest.Unjudged:
			bar.Level, bar.Text = "warn", bar.Text+" at least, not evaluated"
		}
		bar.Y = chartHeight - bar.Height
		chart.Bars = append(chart.Bars, bar)
	}
	chart.Threshold = chartHeight - height(rule.Threshold)
	chart.Label = fmt.Sprintf("%d evaluations from %s to %s, at most %s entries", len(all), ui.Instant(chart.From), ui.Instant(chart.To), ui.Count(chart.Max))
	return chart
}
