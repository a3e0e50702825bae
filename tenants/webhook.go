package tenants

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// WebhookOverlap is how long the previous secret also signs after a rotation.
const WebhookOverlap = 24 * time.Hour

// maxWebhookURL is the longest address of an endpoint, in bytes.
const maxWebhookURL = 2000

// Why a webhook can't be used or rotated.
var (
	ErrWebhookOff = errors.New("the webhook is switched off")
	// ErrWebhookRotated means that two secrets are in use.
	ErrWebhookRotated = errors.New("the webhook was rotated before, and its old secret still signs")
)

// A Webhook is an endpoint to which an organization's facts are sent.
type Webhook struct {
	ID           string // empty until it is created
	Organization string
	URL          string
	Events       []string      // names of facts, sorted, each once
	Format       WebhookFormat // empty: made before there were formats; see Takes
	Secret       WebhookSecret
	Previous     WebhookSecret // also signs until PreviousEnds
	PreviousEnds time.Time
	CreatedAt    time.Time
	OffAt        time.Time // zero: it is on
	OffReason    string
	DeletedAt    time.Time // zero: not deleted
}

// A WebhookFormat is what the bodies of a webhook's messages are like. Formats
// are stored and shown, so they are never renamed.
type WebhookFormat string

// The formats.
const (
	StandardFormat WebhookFormat = "standard" // the fact as JSON, by the convention of Standard Webhooks
	SlackFormat    WebhookFormat = "slack"    // {"text": …}, as Slack takes it, and others that follow it
)

// WebhookFormats lists all of them.
func WebhookFormats() []WebhookFormat { return []WebhookFormat{StandardFormat, SlackFormat} }

// formatFor is the format of an address for which nobody has chosen one:
// Slack's own, and Discord's for Slack, take no other than Slack's.
func formatFor(address string) WebhookFormat {
	at, err := url.Parse(address)
	if err == nil && (at.Hostname() == "hooks.slack.com" || at.Hostname() == "discord.com" && strings.HasSuffix(at.Path, "/slack")) {
		return SlackFormat
	}
	return StandardFormat
}

// A WebhookSecret identifies a secret, which is not
// stored: it is derived from a key of the installation.
type WebhookSecret struct {
	Key        string `json:"key"` // id of the key
	Generation int    `json:"generation"`
}

// WebhookCreated starts a webhook.
type WebhookCreated struct {
	Webhook      string        `json:"webhook"`
	Organization string        `json:"organization"`
	URL          string        `json:"url"`
	Events       []string      `json:"events"`
	Format       WebhookFormat `json:"format"`
	Secret       WebhookSecret `json:"secret"`
	At           time.Time     `json:"at"`
}

func (e WebhookCreated) meta() eventMeta {
	return eventMeta{"tenants.v1.webhook_created", PublishedFact, "webhook.created", e.At, &Webhook{}, kept}
}

// WebhookChanged changes a webhook's URL, the facts sent to it, or their format.
type WebhookChanged struct {
	Webhook string        `json:"webhook"`
	URL     string        `json:"url"`
	Events  []string      `json:"events"`
	Format  WebhookFormat `json:"format"`
	At      time.Time     `json:"at"`
}

func (e WebhookChanged) meta() eventMeta {
	return eventMeta{"tenants.v1.webhook_changed", PublishedFact, "webhook.changed", e.At, &Webhook{}, byNext}
}

// WebhookRotated gives a webhook another secret.
// The previous one also signs for a while.
type WebhookRotated struct {
	Webhook      string        `json:"webhook"`
	Secret       WebhookSecret `json:"secret"`
	PreviousEnds time.Time     `json:"previous_ends"`
	At           time.Time     `json:"at"`
}

func (e WebhookRotated) meta() eventMeta {
	// the previous secret is that of the rotation before
	return eventMeta{"tenants.v1.webhook_rotated", Unpublished, "webhook.rotated", e.At, &Webhook{}, Replacement{By: 2}}
}

// WebhookSwitched switches a webhook off, or on again.
type WebhookSwitched struct {
	Webhook string    `json:"webhook"`
	On      bool      `json:"on"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}

func (e WebhookSwitched) meta() eventMeta {
	return eventMeta{"tenants.v1.webhook_switched", PublishedFact, "webhook.switched", e.At, &Webhook{}, byNext}
}

// WebhookDeleted ends a webhook.
type WebhookDeleted struct {
	Webhook string    `json:"webhook"`
	At      time.Time `json:"at"`
}

func (e WebhookDeleted) meta() eventMeta {
	return eventMeta{"tenants.v1.webhook_deleted", PublishedFact, "webhook.deleted", e.At, &Webhook{}, kept}
}

// CreateWebhook is the command to create
// a webhook of an existing organization.
type CreateWebhook struct {
	ID           string
	Organization string
	URL          string
	Events       []string
	Format       WebhookFormat // empty: as the address says
	Known        []string      // all facts
	Key          string        // from which the secret is derived
	At           time.Time
}

// Check returns Invalid with every fault of the command, or
// nil. It does not check whether the address may be reached.
func (c CreateWebhook) Check() error {
	faults := append(checkGiven("organization", c.Organization), checkWebhookURL(c.URL)...)
	faults = append(faults, checkWebhookEvents(c.Events, c.Known)...)
	return append(faults, checkWebhookFormat(cmp.Or(c.Format, StandardFormat))...).orNil()
}

func checkWebhookURL(address string) Invalid {
	if address == "" || len(address) > maxWebhookURL || strings.ContainsAny(address, "@#") || strings.ContainsFunc(address, notInURL) {
		return Invalid{BadWebhookURL(address)}
	}
	return nil
}

func notInURL(r rune) bool { return r <= ' ' || r >= 0x7f }

// BadWebhookURL is the fault of an address that is never used.
func BadWebhookURL(address string) Fault {
	return Fault{"url", fmt.Sprintf("Weir can't send to %q.", address),
		fmt.Sprintf("Use the https address of a public endpoint, by port 443 or one from 1024, of at "+
			"most %d characters, without a user or a fragment, such as https://hooks.example.com/weir.", maxWebhookURL)}
}

func checkWebhookFormat(format WebhookFormat) Invalid {
	if slices.Contains(WebhookFormats(), format) {
		return nil
	}
	return Invalid{Fault{"format", fmt.Sprintf("format is %q.", format),
		"Use standard, or slack for an endpoint that takes messages as Slack does, such as one of Mattermost or Rocket.Chat."}}
}

func checkWebhookEvents(events, known []string) (faults Invalid) {
	if len(events) == 0 || len(events) > len(known) {
		faults = append(faults, Fault{"events", fmt.Sprintf("There are %d events.", len(events)), "Send some of " + strings.Join(known, ", ") + ", each once."})
	}
	for i, event := range events[:min(len(events), len(known))] {
		if !slices.Contains(known, event) {
			faults = append(faults, Fault{fmt.Sprintf("events/%d", i), fmt.Sprintf("The event is %q.", event), oneOf(known)})
		}
	}
	return faults
}

// Create decides on a new webhook. A repeated request fails with
// ErrShownOnce, another one with the same id with ErrReused.
func (w Webhook) Create(cmd CreateWebhook) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	created := WebhookCreated{
		Webhook: cmd.ID, Organization: cmd.Organization, URL: cmd.URL, Events: sorted(cmd.Events), Format: cmp.Or(cmd.Format, formatFor(cmd.URL)),
		Secret: WebhookSecret{cmd.Key, 1}, At: cmd.At,
	}
	switch {
	case w.ID == "":
		return []Event{created}, nil
	case w.URL == created.URL && w.Takes() == created.Format && slices.Equal(w.Events, created.Events):
		return nil, ErrShownOnce
	}
	return nil, ErrReused
}

// ChangeWebhook is the command to change a webhook; nil: unchanged.
type ChangeWebhook struct {
	URL    *string
	Events []string
	Format *WebhookFormat // stays as it is for another address, too
	On     *bool
	Known  []string
	At     time.Time
}

// Check returns Invalid with every fault of the command, or nil.
func (c ChangeWebhook) Check() error {
	var faults Invalid
	if c.URL != nil {
		faults = append(faults, checkWebhookURL(*c.URL)...)
	}
	if c.Events != nil {
		faults = append(faults, checkWebhookEvents(c.Events, c.Known)...)
	}
	if c.Format != nil {
		faults = append(faults, checkWebhookFormat(*c.Format)...)
	}
	return faults.orNil()
}

// Change decides on the changes. What stays the same has no event.
func (w Webhook) Change(cmd ChangeWebhook) (events []Event, err error) {
	if err := errors.Join(cmd.Check(), w.checkExists()); err != nil {
		return nil, err
	}
	changed := WebhookChanged{Webhook: w.ID, URL: w.URL, Events: w.Events, Format: w.Takes(), At: cmd.At}
	if cmd.URL != nil {
		changed.URL = *cmd.URL
	}
	if cmd.Events != nil {
		changed.Events = sorted(cmd.Events)
	}
	if cmd.Format != nil {
		changed.Format = *cmd.Format
	}
	if changed.URL != w.URL || changed.Format != w.Takes() || !slices.Equal(changed.Events, w.Events) {
		events = append(events, changed)
	}
	if cmd.On != nil && *cmd.On != w.On() {
		events = append(events, WebhookSwitched{Webhook: w.ID, On: *cmd.On, At: cmd.At})
	}
	return events, nil
}

// SwitchOff decides to switch the webhook off after failed deliveries.
func (w Webhook) SwitchOff(reason string, at time.Time) ([]Event, error) {
	if w.ID == "" || !w.DeletedAt.IsZero() || !w.On() {
		return nil, nil
	}
	return []Event{WebhookSwitched{Webhook: w.ID, Reason: reason, At: at}}, nil
}

// Rotate decides on another secret, derived from
// a key. While two are in use there is no third.
func (w Webhook) Rotate(key string, at time.Time) ([]Event, error) {
	if err := w.checkExists(); err != nil {
		return nil, err
	}
	if at.Before(w.PreviousEnds) {
		return nil, ErrWebhookRotated
	}
	return []Event{WebhookRotated{
		Webhook: w.ID, Secret: WebhookSecret{key, w.Secret.Generation + 1}, PreviousEnds: at.Add(WebhookOverlap), At: at,
	}}, nil
}

// Delete decides to end the webhook.
func (w Webhook) Delete(at time.Time) ([]Event, error) {
	if err := w.checkExists(); err != nil {
		return nil, err
	}
	return []Event{WebhookDeleted{Webhook: w.ID, At: at}}, nil
}

func (w Webhook) checkExists() error {
	if w.ID == "" || !w.DeletedAt.IsZero() {
		return ErrNotFound
	}
	return nil
}

// Host is the host of its address, by which people know it: the rest may hold a secret.
func (w Webhook) Host() string {
	at, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return at.Hostname()
}

// Takes is the format of its messages.
func (w Webhook) Takes() WebhookFormat { return cmp.Or(w.Format, formatFor(w.URL)) }

// On reports whether facts are sent.
func (w Webhook) On() bool { return w.OffAt.IsZero() }

// Secrets are those that sign at now, the newest first.
func (w Webhook) Secrets(now time.Time) []WebhookSecret {
	if now.Before(w.PreviousEnds) {
		return []WebhookSecret{w.Secret, w.Previous}
	}
	return []WebhookSecret{w.Secret}
}

// Apply applies an event.
func (w *Webhook) Apply(event Event) {
	switch e := event.(type) {
	case WebhookCreated:
		*w = Webhook{ID: e.Webhook, Organization: e.Organization, URL: e.URL, Events: e.Events, Format: e.Format, Secret: e.Secret, CreatedAt: e.At}
	case WebhookChanged:
		w.URL, w.Events, w.Format = e.URL, e.Events, e.Format
	case WebhookRotated:
		w.Previous, w.PreviousEnds, w.Secret = w.Secret, e.PreviousEnds, e.Secret
	case WebhookSwitched:
		w.OffAt, w.OffReason = e.At, e.Reason
		if e.On {
			w.OffAt = time.Time{}
		}
	case WebhookDeleted:
		w.DeletedAt = e.At
	default:
		panic(fmt.Sprintf("BUG: a webhook does not know %T", event))
	}
}

func (w *Webhook) audited() (Target, Fields) {
	return Target{"webhook", w.ID, w.URL}, Fields{
		"url": w.URL, "events": w.Events, "format": string(w.Format), "on": w.On(), "reason": w.OffReason, "secret_generation": w.Secret.Generation,
		"previous_ends": w.PreviousEnds, "deleted": !w.DeletedAt.IsZero(),
	}
}

// A Fact is what another module published about
// an organization, for webhooks and mails.
type Fact struct {
	ID           string // of its event
	Name         string // by which webhooks subscribe
	Organization string
	Project      string    // empty: none
	Time         time.Time // when it happened: on the clock of a test, or as a client says
	Published    time.Time // real, in milliseconds
	MailTo       MailTo
	Webhooks     []string // ids of those that get it whatever they ask for
	OnlyWebhooks bool     // no others get it
	Data         json.RawMessage
}

// MailTo are the members who get mail of a fact.
type MailTo struct {
	Roles   []Role
	Members []string // ids of others who get it, too
}
