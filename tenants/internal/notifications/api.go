package notifications

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

// BillingScope is the scope of billing
// services, which have webhooks of their own.
const BillingScope = "billing:write"

// An API serves webhooks to service tokens.
type API struct {
	*api.Kit
	service    *Service
	deliveries *Deliveries
}

// NewAPI returns the API of a service.
func NewAPI(kit *api.Kit, service *Service, deliveries *Deliveries) API {
	return API{kit, service, deliveries}
}

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return slices.Concat(webhookOperations(a), deliveryOperations(a))
}

func webhookOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/webhooks", ID: "listWebhooks",
			Handle: a.list, Scopes: []string{BillingScope, api.AdminScope},
			Summary: "The webhooks of an organization",
			Query:   httpapi.Page{},
			Answer:  openapi.Answer{Type: httpapi.List[webhookJSON]{}, Description: "A page, from old to new"},
		},
		{
			Route: "POST /v1/organizations/{organization}/webhooks", ID: "createWebhook",
			Handle: a.create, Scopes: []string{BillingScope, api.AdminScope},
			Summary: "Have facts sent to an endpoint, by the convention of Standard Webhooks: POST, signed with the secret that is in " +
				"this answer alone",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newWebhookBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: webhookJSON{}},
			Problems: map[int]string{
				http.StatusConflict: "limit_reached; secret_shown_once; webhooks_not_configured: the operator has to set WEIR_WEBHOOK_KEYS",
			},
		},
		{
			Route: "GET /v1/organizations/{organization}/webhooks/{webhook}", ID: "getWebhook",
			Handle: a.of(a.get), Scopes: []string{BillingScope, api.AdminScope},
			Summary: "One webhook",
			Answer:  openapi.Answer{Type: webhookJSON{}, Description: "The webhook"},
		},
		{
			Route: "PATCH /v1/organizations/{organization}/webhooks/{webhook}", ID: "changeWebhook",
			Handle: a.named(a.change), Scopes: []string{BillingScope, api.AdminScope},
			Summary: "Change a webhook, or switch it off or on. What is not sent meanwhile has failed, and can be replayed",
			Headers: repeatable{},
			Body:    openapi.Body{Type: changeWebhookBody{}},
			Answer:  openapi.Answer{Type: webhookJSON{}, Description: "The webhook"},
		},
		{
			Route: "DELETE /v1/organizations/{organization}/webhooks/{webhook}", ID: "deleteWebhook",
			Handle: a.named(a.remove), Scopes: []string{BillingScope, api.AdminScope},
			Summary: "Delete a webhook, and what is known of its deliveries",
			Headers: repeatable{},
			Answer:  openapi.Answer{Type: webhookJSON{}, Description: "The webhook as it was"},
		},
		{
			Route: "POST /v1/organizations/{organization}/webhooks/{webhook}/rotate", ID: "rotateWebhook",
			Handle: a.named(a.rotate), Scopes: []string{BillingScope, api.AdminScope},
			Summary: "Give a webhook another secret, which is in this answer alone. The old one also signs for 24 hours",
			Headers: rotationHeaders{},
			Answer:  openapi.Answer{Type: webhookJSON{}, Description: "The webhook, with its new secret"},
			Problems: map[int]string{
				http.StatusConflict: "webhook_rotated: two secrets are in use already; secret_shown_once; " +
					"webhooks_not_configured: the operator has to set WEIR_WEBHOOK_KEYS",
			},
		},
	}
}

type webhookJSON struct {
	ID                  string                `json:"id"`
	Organization        string                `json:"organization"`
	URL                 string                `json:"url"`
	Events              []string              `json:"events"`
	Format              tenants.WebhookFormat `json:"format" enum:"standard,slack"`
	Secret              string                `json:"secret,omitempty" pattern:"^whsec_" description:"In the answers to its creation and to its rotation only"`
	State               string                `json:"state" enum:"on,off,deleted"`
	CreatedAt           time.Time             `json:"created_at"`
	OffAt               *time.Time            `json:"off_at"`
	OffReason           *string               `json:"off_reason" description:"Why it was switched off by itself; empty: a person did it"`
	TakenAt             *time.Time            `json:"taken_at" description:"When it last answered 2xx"`
	PreviousSecretUntil *time.Time            `json:"previous_secret_until" description:"Until when the old secret also signs; null: one secret signs"`
}

// States of webhooks.
const (
	stateOn  = "on"
	stateOff = "off"
)

func (a API) show(w Listed) webhookJSON {
	shown := webhookJSON{
		ID: w.ID, Organization: w.Organization, URL: w.URL, Events: w.Events, Format: w.Takes(), State: stateOn,
		CreatedAt: w.CreatedAt.UTC(), TakenAt: httpapi.TimeOrNull(w.TakenAt),
	}
	if !w.On() {
		shown.State, shown.OffAt, shown.OffReason = stateOff, httpapi.TimeOrNull(w.OffAt), &w.OffReason
	}
	if len(w.Secrets(a.Clock())) > 1 {
		shown.PreviousSecretUntil = httpapi.TimeOrNull(w.PreviousEnds)
	}
	return shown
}

func placeOf(w Listed) query.Position { return query.Position{At: w.CreatedAt, ID: w.ID} }

func (a API) list(w http.ResponseWriter, r *http.Request) error {
	organization := chi.URLParam(r, "organization")
	after, limit, err := api.PageOf(r)
	if err != nil {
		return err
	}
	found, err := a.service.List(r.Context(), api.CallerOf(r), organization, after, limit+1)
	if err != nil {
		return api.ProblemOf(err, "organization", organization)
	}
	httpapi.WriteList(w, r, found, limit, a.show, placeOf)
	return nil
}

// repeatable is the headers of a change.
type repeatable struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"The same request with the same key within 30 days is answered as it was and has no further effect; another one is refused: idempotency_key_reused"`
}

type rotationHeaders struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"The same request with the same key within 30 days rotates no more, and is a 409 secret_shown_once: the secret is not kept; another one is refused: idempotency_key_reused"`
}

type newWebhookBody struct {
	URL    string                `json:"url" required:"true" minLength:"1" maxLength:"2000" description:"An https address on the public network, by port 443 or one from 1024, without a user or a fragment."`
	Events []string              `json:"events" required:"true" minItems:"1" description:"Names of facts, each once: quota.threshold_reached, quota.exhausted, error_group.created, search_alert.firing, search_alert.resolved"`
	Format tenants.WebhookFormat `json:"format" enum:"standard,slack" description:"standard: the fact as JSON. slack: {\"text\": …}, as Slack, Mattermost, Rocket.Chat and others take it; it is signed, too. Left out: slack for hooks.slack.com and discord.com/…/slack, else standard"`
}

func (a API) create(w http.ResponseWriter, r *http.Request) error {
	var body newWebhookBody
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	organization := chi.URLParam(r, "organization")
	created, secret, err := a.service.Create(r.Context(), request, NewWebhook{Organization: organization, URL: body.URL, Events: body.Events, Format: body.Format})
	if err != nil {
		return problemOf(err, "organization", organization)
	}
	shown := a.show(Listed{Webhook: created})
	shown.Secret = secret.Reveal()
	httpapi.WriteJSON(w, http.StatusCreated, shown)
	return nil
}

// problemOf adds this room's errors to api.ProblemOf.
func problemOf(err error, what, id string) error {
	if errors.Is(err, ErrNotConfigured) {
		return httpapi.NewProblem(http.StatusConflict, "webhooks_not_configured",
			"This installation sends no webhooks: its operator has to set WEIR_WEBHOOK_KEYS.")
	}
	return api.ProblemOf(err, what, id)
}

// named reads which webhook the path names, of an
// organization that the caller may access. It may be deleted.
func (a API) named(next func(w http.ResponseWriter, r *http.Request, of Ref) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		of := Ref{chi.URLParam(r, "organization"), chi.URLParam(r, "webhook")}
		if _, err := a.service.organizations.Organization(r.Context(), api.CallerOf(r), of.Organization); err != nil {
			return api.ProblemOf(err, "organization", of.Organization)
		}
		return problemOf(next(w, r, of), "webhook", of.ID)
	}
}

// of finds the webhook in the path.
func (a API) of(next func(w http.ResponseWriter, r *http.Request, of Listed) error) func(http.ResponseWriter, *http.Request) error {
	return a.named(func(w http.ResponseWriter, r *http.Request, of Ref) error {
		found, err := a.service.Webhook(r.Context(), api.CallerOf(r), of)
		if err != nil {
			return err
		}
		return next(w, r, found)
	})
}

func (a API) get(w http.ResponseWriter, _ *http.Request, of Listed) error {
	httpapi.WriteJSON(w, http.StatusOK, a.show(of))
	return nil
}

type changeWebhookBody struct {
	URL    *string                `json:"url" minLength:"1" maxLength:"2000" description:"An https address on the public network, by port 443 or one from 1024, without a user or a fragment."`
	Events *[]string              `json:"events" minItems:"1" description:"Names of facts, each once: quota.threshold_reached, quota.exhausted, error_group.created, search_alert.firing, search_alert.resolved"`
	Format *tenants.WebhookFormat `json:"format" enum:"standard,slack" description:"standard: the fact as JSON. slack: {\"text\": …}, as Slack, Mattermost, Rocket.Chat and others take it; it is signed, too. Left out: as it was, for another address, too"`
	State  *string                `json:"state" enum:"on,off"`
}

func (a API) change(w http.ResponseWriter, r *http.Request, of Ref) error {
	var body changeWebhookBody
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	wanted := tenants.ChangeWebhook{URL: body.URL, Format: body.Format}
	if body.Events != nil {
		wanted.Events = append([]string{}, *body.Events...)
	}
	if body.State != nil {
		on := *body.State == stateOn
		if !on && *body.State != stateOff {
			return httpapi.Invalid("/state", httpapi.CodeInvalidRequest, "The state is none of a webhook.", `Send "on" or "off".`)
		}
		wanted.On = &on
	}
	changed, err := a.service.Change(r.Context(), request, of, wanted)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, a.show(changed))
	return nil
}

// remove responds with the webhook as it was.
func (a API) remove(w http.ResponseWriter, r *http.Request, of Ref) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	deleted, err := a.service.Delete(r.Context(), request, of)
	if err != nil {
		return err
	}
	shown := a.show(deleted)
	shown.State = "deleted"
	httpapi.WriteJSON(w, http.StatusOK, shown)
	return nil
}

func (a API) rotate(w http.ResponseWriter, r *http.Request, of Ref) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	rotated, secret, err := a.service.Rotate(r.Context(), request, of)
	if err != nil {
		return err
	}
	shown := a.show(rotated)
	shown.Secret = secret.Reveal()
	httpapi.WriteJSON(w, http.StatusOK, shown)
	return nil
}

func deliveryOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations/{organization}/webhooks/{webhook}/test", ID: "testWebhook",
			Handle: a.named(a.test), Scopes: []string{BillingScope, api.AdminScope},
			Summary:  "Send a message of type webhook.test",
			Headers:  repeatable{},
			Answer:   openapi.Answer{Status: http.StatusAccepted, Type: deliveryJSON{}, Description: "The delivery, which is sent at once"},
			Problems: map[int]string{http.StatusConflict: "webhook_off"},
		},
		{
			Route: "POST /v1/organizations/{organization}/webhooks/{webhook}/replay", ID: "replayWebhook",
			Handle: a.named(a.replayFailed), Scopes: []string{BillingScope, api.AdminScope},
			Summary:  "Send all deliveries again that have failed",
			Headers:  repeatable{},
			Body:     openapi.Body{Type: replayBody{}},
			Answer:   openapi.Answer{Status: http.StatusAccepted, Type: replayedJSON{}, Description: "How many are sent again"},
			Problems: map[int]string{http.StatusConflict: "webhook_off"},
		},
		{
			Route: "GET /v1/organizations/{organization}/webhooks/{webhook}/deliveries", ID: "listDeliveries",
			Handle: a.of(a.listDeliveries), Scopes: []string{BillingScope, api.AdminScope},
			Summary: "What was sent to a webhook, or is to be: 30 days, and at most 10,000",
			Query:   deliveriesQuery{},
			Answer:  openapi.Answer{Type: httpapi.List[deliveryJSON]{}, Description: "A page, from new to old"},
		},
		{
			Route: "POST /v1/organizations/{organization}/webhooks/{webhook}/deliveries/{delivery}/replay", ID: "replayDelivery",
			Handle: a.of(a.replay), Scopes: []string{BillingScope, api.AdminScope},
			Summary:  "Send one delivery again, with the same id",
			Headers:  repeatable{},
			Answer:   openapi.Answer{Status: http.StatusAccepted, Type: deliveryJSON{}, Description: "The delivery"},
			Problems: map[int]string{http.StatusConflict: "webhook_off"},
		},
	}
}

type deliveryJSON struct {
	ID          string     `json:"id" description:"As the header webhook-id has it: the same in every attempt and replay"`
	Webhook     string     `json:"webhook"`
	Type        string     `json:"type"`
	State       State      `json:"state" enum:"pending,taken,failed" description:"failed: it is not sent again by itself"`
	CreatedAt   time.Time  `json:"created_at"`
	Attempts    int        `json:"attempts" minimum:"0" description:"Since it was created or last replayed; at most 11 within three days"`
	AttemptedAt *time.Time `json:"attempted_at"`
	NextAt      *time.Time `json:"next_at" description:"null: it is not sent again by itself"`
	Status      *int       `json:"status" description:"Of the last attempt; null: there was no answer"`
	Answer      string     `json:"answer" description:"How the last answer began, at most 1 KB"`
	Failure     *string    `json:"failure" description:"Why there was no answer, or no attempt"`
	Payload     payload    `json:"payload" description:"The body as it is sent in the format standard"`
}

// A payload is a webhook.Payload as it is sent, byte for byte.
type payload json.RawMessage

// MarshalJSON returns it.
func (p payload) MarshalJSON() ([]byte, error) { return p, nil }

// JSONSchemaBytes describes it.
func (payload) JSONSchemaBytes() ([]byte, error) {
	return []byte(`{"type": "object", "required": ["type", "timestamp", "data"],
		"properties": {"type": {"type": "string"}, "timestamp": {"type": "string", "format": "date-time"}, "data": {"type": "object"}}}`), nil
}

func showDelivery(d Delivery) deliveryJSON {
	shown := deliveryJSON{
		ID: d.ID, Webhook: d.Webhook, Type: d.Type, State: d.State, CreatedAt: d.CreatedAt.UTC(), Attempts: d.Attempts,
		AttemptedAt: httpapi.TimeOrNull(d.AttemptedAt), Status: httpapi.OrNull(d.Status), Answer: d.Answer, Failure: httpapi.OrNull(d.Failure),
		Payload: payload(d.Body),
	}
	if d.State == Pending {
		shown.NextAt = httpapi.TimeOrNull(d.NextAt)
	}
	return shown
}

func placeOfDelivery(d Delivery) query.Position { return query.Position{At: d.CreatedAt, ID: d.ID} }

type deliveriesQuery struct {
	State State `query:"state" enum:"pending,taken,failed" description:"Only those in this state"`
	httpapi.Page
}

func (a API) listDeliveries(w http.ResponseWriter, r *http.Request, of Listed) error {
	before, limit, err := api.PageOf(r)
	if err != nil {
		return err
	}
	state := State(r.URL.Query().Get("state"))
	if state != "" && !slices.Contains(States(), state) {
		return httpapi.Invalid("?state", httpapi.CodeInvalidRequest, fmt.Sprintf("state is %q.", string(state)), "Use pending, taken or failed, or leave it out.")
	}
	found, err := a.deliveries.List(r.Context(), api.CallerOf(r), of.Ref(), state, before, limit+1)
	if err != nil {
		return err
	}
	httpapi.WriteList(w, r, found, limit, showDelivery, placeOfDelivery)
	return nil
}

func (a API) test(w http.ResponseWriter, r *http.Request, of Ref) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	added, err := a.deliveries.Test(r.Context(), request, of)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusAccepted, showDelivery(added))
	return nil
}

func (a API) replay(w http.ResponseWriter, r *http.Request, of Listed) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "delivery")
	replayed, err := a.deliveries.Replay(r.Context(), request, of.Ref(), id)
	if err != nil {
		return api.ProblemOf(err, "delivery", id)
	}
	httpapi.WriteJSON(w, http.StatusAccepted, showDelivery(replayed))
	return nil
}

type replayBody struct {
	Since time.Time `json:"since" required:"true" description:"Those that were created before are left alone"`
}

type replayedJSON struct {
	Replayed int64 `json:"replayed" minimum:"0"`
}

func (a API) replayFailed(w http.ResponseWriter, r *http.Request, of Ref) error {
	var body replayBody
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	replayed, err := a.deliveries.ReplayFailed(r.Context(), request, of, body.Since)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusAccepted, replayedJSON{replayed})
	return nil
}
