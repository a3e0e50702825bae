package notifications

import (
	"embed"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

//go:embed templates/*.html
var templates embed.FS

// Pages are the pages of webhooks.
type Pages struct {
	pages.Set
	service    *Service
	deliveries *Deliveries
}

// NewPages returns the pages of a service.
func NewPages(kit *pages.Kit, service *Service, deliveries *Deliveries) Pages {
	return Pages{kit.Of(templates), service, deliveries}
}

// Mount adds the pages to the settings. A change of where deliveries
// go, or of their secret, needs a recent proof of identity.
func (p Pages) Mount(settings chi.Router) {
	const path = pages.WebhooksPath
	may, confirmed := tenants.WebhooksManage, p.Confirmed
	settings.Get(path, p.For(may, p.list))
	settings.Get(path+"/new", confirmed(may, p.showNew))
	settings.Post(path, confirmed(may, p.create))
	settings.Get(path+"/{id}", p.For(may, p.of(p.showOne)))
	settings.Get(path+"/{id}/edit", confirmed(may, p.of(p.showChange)))
	settings.Post(path+"/{id}/edit", confirmed(may, p.of(p.change)))
	settings.Get(path+"/{id}/rotate", confirmed(may, p.of(p.showRotate)))
	settings.Post(path+"/{id}/rotate", confirmed(may, p.of(p.rotate)))
	settings.Get(path+"/{id}/delete", p.For(may, p.of(p.showDelete)))
	settings.Post(path+"/{id}/delete", p.For(may, p.remove))
	settings.Post(path+"/{id}/test", p.For(may, p.of(p.test)))
	settings.Post(path+"/{id}/replay", p.For(may, p.of(p.replayFailed)))
	settings.Post(path+"/{id}/deliveries/{delivery}/replay", p.For(may, p.of(p.replay)))
}

// of finds the webhook in the address.
func (p Pages) of(next func(w http.ResponseWriter, r *http.Request, of Listed) error) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, caller := chi.URLParam(r, "id"), pages.CallerOf(r)
		found, err := p.service.Webhook(r.Context(), caller, Ref{caller.Organization, id})
		if err != nil {
			return pages.ProblemOf(err, "webhook", id)
		}
		return problemOfPage(next(w, r, found), id)
	}
}

// problemOfPage adds this room's errors to pages.ProblemOf.
func problemOfPage(err error, id string) error {
	switch {
	case errors.Is(err, ErrNotConfigured):
		return httpapi.NewProblem(http.StatusConflict, "webhooks_not_configured",
			"This installation sends no webhooks: its operator has to set WEIR_WEBHOOK_KEYS.")
	case errors.Is(err, tenants.ErrShownOnce):
		return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
			"This form was sent before, and the secret was shown then. If you did not save it, rotate the webhook.")
	}
	return pages.ProblemOf(err, "webhook", id)
}

type listPage struct {
	pages.Settings
	Webhooks   []Listed
	Pager      ui.Pager
	Capacity   pages.ShownCapacity
	Configured bool
	Mail       bool
}

func (p Pages) list(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(after query.Position, limit int) ([]Listed, error) {
		return p.service.List(r.Context(), caller, caller.Organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOf)
	if err != nil {
		return err
	}
	page := listPage{Settings: shown, Webhooks: list, Pager: pager, Configured: p.service.Configured(), Mail: p.deliveries.mail}
	if page.Capacity, err = pages.CapacityOf(r, p.service.Capacity); err != nil {
		return err
	}
	p.write(w, r, http.StatusOK, "webhooks", "Webhooks", page)
	return nil
}

func (p Pages) write(w http.ResponseWriter, r *http.Request, status int, template, title string, page any) {
	p.Write(w, r, status, template, ui.View{Title: title, Tabs: pages.Tabs(r, pages.WebhooksPath), Data: page, Flash: ui.TakeFlash(w, r, flashes)})
}

var flashes = map[string]string{
	"webhook-changed":  "The webhook was changed.",
	"webhook-deleted":  "The webhook was deleted. Nothing is sent to it any more.",
	"webhook-tested":   "A test was sent. Its result appears below.",
	"webhook-replayed": "It is being sent again.",
}

// A form is the form of a webhook.
type form struct {
	pages.Settings
	Action string // of the form
	Back   string
	Button string
	URL    ui.Field
	Format ui.Field
	Groups []eventGroup
	Fault  string    // of the events
	On     *ui.Field // nil: a new webhook
	Secret bool      // the next page shows one
}

// formatTexts are the formats in words.
var formatTexts = [][2]string{ // bounded by the formats
	{string(tenants.StandardFormat), "Standard: JSON"},
	{string(tenants.SlackFormat), "Slack: a text"},
}

func fillForm(shown pages.Settings, sent NewWebhook, fault error, formats ...[2]string) form {
	f := form{Settings: shown, URL: ui.Field{
		Name: "url", Label: "Address", Type: "url", Value: sent.URL, Fault: pages.FaultOf(fault, "url"), MaxLength: 2000, Required: true, Autocomplete: "off",
		Hint: "An https address that is reachable from the internet.",
	}}
	f.Format = ui.Field{
		Name: "format", Label: "Format", Fault: pages.FaultOf(fault, "format"), Choices: ui.NewChoices(string(sent.Format), formats...),
		Hint: "Slack's suits Mattermost, Rocket.Chat, Discord's addresses that end in /slack, and others too.",
	}
	if pages.IsInvalid(fault) && f.URL.Fault+f.Format.Fault == "" {
		f.Fault = "Choose at least one event."
	}
	f.Groups = groupEvents(sent.Events)
	return f
}

// An eventGroup is the events about one subject.
type eventGroup struct {
	Title  string
	Events []ui.Choice
}

// groupEvents groups all events by subject; chosen are ticked.
func groupEvents(chosen []string) (groups []eventGroup) {
	for _, fact := range contract.Notifications() {
		title := subjectOf(fact.Name)
		i := slices.IndexFunc(groups, func(group eventGroup) bool { return group.Title == title })
		if i < 0 {
			i, groups = len(groups), append(groups, eventGroup{Title: title})
		}
		choice := ui.Choice{Value: fact.Name, Text: "when " + fact.Means, Selected: slices.Contains(chosen, fact.Name)}
		groups[i].Events = append(groups[i].Events, choice)
	}
	return groups
}

// subjectOf names the subject of an event: its own first word, or what it belongs to.
func subjectOf(event string) string {
	switch noun, _, _ := strings.Cut(event, "."); noun {
	case "search_alert", "error_alert":
		return "Alerts"
	case "error_group":
		return "Errors"
	case "budget":
		return "Budgets"
	case "subscription", "grant", "period", "statement":
		return "Billing"
	default:
		return strings.ToUpper(noun[:1]) + strings.ReplaceAll(noun[1:], "_", " ")
	}
}

func (p Pages) showNew(w http.ResponseWriter, r *http.Request) error {
	return p.writeNew(w, r, http.StatusOK, NewWebhook{}, nil)
}

func (p Pages) writeNew(w http.ResponseWriter, r *http.Request, status int, wanted NewWebhook, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	page := fillForm(shown, wanted, fault, append([][2]string{{"", "As the address says"}}, formatTexts...)...)
	page.Action, page.Back, page.Button, page.Secret = pages.WebhooksPath, pages.WebhooksPath, "Create webhook", true
	p.write(w, r, status, "webhook-form", "Create a webhook", page)
	return nil
}

// sentIn is the webhook of a form.
func sentIn(r *http.Request) NewWebhook {
	return NewWebhook{
		URL: r.PostForm.Get("url"), Events: append([]string{}, r.PostForm["events"]...), Format: tenants.WebhookFormat(r.PostForm.Get("format")),
	}
}

func (p Pages) create(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	request := p.RequestOf(r)
	wanted := sentIn(r)
	wanted.Organization = request.Caller.Organization
	created, secret, err := p.service.Create(r.Context(), request, wanted)
	if pages.IsInvalid(err) {
		return p.writeNew(w, r, http.StatusUnprocessableEntity, wanted, err)
	}
	if err != nil {
		return problemOfPage(err, wanted.Organization)
	}
	p.writeSecret(w, r, http.StatusCreated, created, secret)
	return nil
}

type secretPage struct {
	Webhook tenants.Webhook
	Secret  ui.Code // shown only on this page
}

func (p Pages) writeSecret(w http.ResponseWriter, r *http.Request, status int, of tenants.Webhook, secret httpapi.Secret) {
	p.write(w, r, status, "webhook-secret", "Save the secret of your webhook now", secretPage{
		of, ui.Code{ID: "secret", Label: "Your secret", Text: secret.Reveal(), Copy: "Copy secret", Secret: true},
	})
}

func pathOf(of Listed) string { return pages.WebhooksPath + "/" + of.ID }

func (p Pages) showChange(w http.ResponseWriter, r *http.Request, of Listed) error {
	return p.writeChange(w, r, of, http.StatusOK, NewWebhook{URL: of.URL, Events: of.Events, Format: of.Takes()}, nil)
}

func (p Pages) writeChange(w http.ResponseWriter, r *http.Request, of Listed, status int, sent NewWebhook, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	state := stateOn
	if !of.On() {
		state = stateOff
	}
	page := fillForm(shown, sent, fault, formatTexts...)
	page.Action, page.Back, page.Button = pathOf(of)+"/edit", pathOf(of), "Save"
	page.On = &ui.Field{Name: "state", Label: "State", Choices: ui.NewChoices(state,
		[2]string{stateOn, "On: events are sent"}, [2]string{stateOff, "Off: events are kept until you send them again"})}
	p.write(w, r, status, "webhook-form", "Change a webhook", page)
	return nil
}

func (p Pages) change(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	sent, on := sentIn(r), r.PostForm.Get("state") != stateOff
	_, err := p.service.Change(r.Context(), p.RequestOf(r), of.Ref(), tenants.ChangeWebhook{URL: &sent.URL, Events: sent.Events, Format: &sent.Format, On: &on})
	if pages.IsInvalid(err) {
		return p.writeChange(w, r, of, http.StatusUnprocessableEntity, sent, err)
	}
	if err != nil {
		return err
	}
	return pages.Done(w, r, "webhook-changed", pathOf(of))
}

// onePage is what a page about one webhook shows.
type onePage struct {
	pages.Settings
	Webhook Listed
	Two     bool // two secrets sign
}

func (p Pages) writeOne(w http.ResponseWriter, r *http.Request, of Listed, template, title string) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	p.write(w, r, http.StatusOK, template, title, onePage{shown, of, len(of.Secrets(p.Clock())) > 1})
	return nil
}

func (p Pages) showRotate(w http.ResponseWriter, r *http.Request, of Listed) error {
	return p.writeOne(w, r, of, "webhook-rotate", "Rotate the secret of a webhook")
}

func (p Pages) rotate(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	rotated, secret, err := p.service.Rotate(r.Context(), p.RequestOf(r), of.Ref())
	if err != nil {
		return err
	}
	p.writeSecret(w, r, http.StatusOK, rotated.Webhook, secret)
	return nil
}

func (p Pages) showDelete(w http.ResponseWriter, r *http.Request, of Listed) error {
	return p.writeOne(w, r, of, "webhook-delete", "Delete a webhook")
}

func (p Pages) remove(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	of := Ref{pages.CallerOf(r).Organization, chi.URLParam(r, "id")}
	if _, err := p.service.Delete(r.Context(), p.RequestOf(r), of); err != nil {
		return problemOfPage(err, of.ID)
	}
	return pages.Done(w, r, "webhook-deleted", pages.WebhooksPath)
}

type webhookPage struct {
	onePage
	Deliveries []Delivery
	Pager      ui.Pager
	Failed     bool // some can be replayed
}

// showOne shows a webhook and its deliveries, newest first.
func (p Pages) showOne(w http.ResponseWriter, r *http.Request, of Listed) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(before query.Position, limit int) ([]Delivery, error) {
		return p.deliveries.List(r.Context(), caller, of.Ref(), "", before, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfDelivery)
	if err != nil {
		return err
	}
	failed, err := p.deliveries.List(r.Context(), caller, of.Ref(), Failed, query.Position{}, 1)
	if err != nil {
		return err
	}
	p.write(w, r, http.StatusOK, "webhook", "Webhook", webhookPage{onePage{shown, of, len(of.Secrets(p.Clock())) > 1}, list, pager, len(failed) > 0})
	return nil
}

func (p Pages) test(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if _, err := p.deliveries.Test(r.Context(), p.RequestOf(r), of.Ref()); err != nil {
		return err
	}
	return pages.Done(w, r, "webhook-tested", pathOf(of))
}

func (p Pages) replay(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	id := chi.URLParam(r, "delivery")
	if _, err := p.deliveries.Replay(r.Context(), p.RequestOf(r), of.Ref(), id); err != nil {
		return pages.ProblemOf(err, "delivery", id)
	}
	return pages.Done(w, r, "webhook-replayed", pathOf(of))
}

// replayFailed replays all stored failed deliveries.
func (p Pages) replayFailed(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if _, err := p.deliveries.ReplayFailed(r.Context(), p.RequestOf(r), of.Ref(), time.Time{}); err != nil {
		return err
	}
	return pages.Done(w, r, "webhook-replayed", pathOf(of))
}
