package notifications

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

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
	Payload     payload    `json:"payload" description:"The body as it is sent"`
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
		AttemptedAt: api.Optional(d.AttemptedAt), Status: api.OrNull(d.Status), Answer: d.Answer, Failure: api.OrNull(d.Failure), Payload: payload(d.Body),
	}
	if d.State == Pending {
		shown.NextAt = api.Optional(d.NextAt)
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
