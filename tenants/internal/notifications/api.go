package notifications

import (
	_ "embed"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

// OpenAPI describes the routes of the room.
//
//go:embed openapi.json
var OpenAPI []byte

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

// Mount adds the routes to router.
func (a API) Mount(router chi.Router) {
	const path = "/v1/organizations/{organization}/webhooks"
	router.Get(path, httpapi.Handle(a.list))
	router.Post(path, httpapi.Handle(a.create))
	router.Get(path+"/{webhook}", httpapi.Handle(a.of(a.get)))
	router.Patch(path+"/{webhook}", httpapi.Handle(a.named(a.change)))
	router.Delete(path+"/{webhook}", httpapi.Handle(a.named(a.remove)))
	router.Post(path+"/{webhook}/rotate", httpapi.Handle(a.named(a.rotate)))
	router.Post(path+"/{webhook}/test", httpapi.Handle(a.named(a.test)))
	router.Post(path+"/{webhook}/replay", httpapi.Handle(a.named(a.replayFailed)))
	router.Get(path+"/{webhook}/deliveries", httpapi.Handle(a.of(a.listDeliveries)))
	router.Post(path+"/{webhook}/deliveries/{delivery}/replay", httpapi.Handle(a.of(a.replay)))
}

type webhookJSON struct {
	ID                  string     `json:"id"`
	Organization        string     `json:"organization"`
	URL                 string     `json:"url"`
	Events              []string   `json:"events"`
	Secret              string     `json:"secret,omitempty"` // in the answers to its creation and rotation only
	State               string     `json:"state"`
	CreatedAt           time.Time  `json:"created_at"`
	OffAt               *time.Time `json:"off_at"`
	OffReason           *string    `json:"off_reason"`
	TakenAt             *time.Time `json:"taken_at"`              // when it last accepted a delivery
	PreviousSecretUntil *time.Time `json:"previous_secret_until"` // null: one secret signs
}

// States of webhooks.
const (
	stateOn  = "on"
	stateOff = "off"
)

func (a API) show(w Listed) webhookJSON {
	shown := webhookJSON{
		ID: w.ID, Organization: w.Organization, URL: w.URL, Events: w.Events, State: stateOn, CreatedAt: w.CreatedAt.UTC(), TakenAt: api.Optional(w.TakenAt),
	}
	if !w.On() {
		shown.State, shown.OffAt, shown.OffReason = stateOff, api.Optional(w.OffAt), &w.OffReason
	}
	if len(w.Secrets(a.Clock())) > 1 {
		shown.PreviousSecretUntil = api.Optional(w.PreviousEnds)
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

func (a API) create(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		URL    string   `json:"url"`
		Events []string `json:"events"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	organization := chi.URLParam(r, "organization")
	created, secret, err := a.service.Create(r.Context(), request, NewWebhook{Organization: organization, URL: body.URL, Events: body.Events})
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

func (a API) change(w http.ResponseWriter, r *http.Request, of Ref) error {
	var body struct {
		URL    *string   `json:"url"`
		Events *[]string `json:"events"`
		State  *string   `json:"state"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	wanted := tenants.ChangeWebhook{URL: body.URL}
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
