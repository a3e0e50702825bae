package notifications

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

type deliveryJSON struct {
	ID          string          `json:"id"` // as in the header webhook-id
	Webhook     string          `json:"webhook"`
	Type        string          `json:"type"`
	State       State           `json:"state"`
	CreatedAt   time.Time       `json:"created_at"`
	Attempts    int             `json:"attempts"` // since it was created or last replayed
	AttemptedAt *time.Time      `json:"attempted_at"`
	NextAt      *time.Time      `json:"next_at"` // null: it is not sent again
	Status      *int            `json:"status"`  // of the last attempt; null: no answer
	Answer      string          `json:"answer"`  // its beginning
	Failure     *string         `json:"failure"` // why there was no answer
	Payload     json.RawMessage `json:"payload"`
}

func showDelivery(d Delivery) deliveryJSON {
	shown := deliveryJSON{
		ID: d.ID, Webhook: d.Webhook, Type: d.Type, State: d.State, CreatedAt: d.CreatedAt.UTC(), Attempts: d.Attempts,
		AttemptedAt: api.Optional(d.AttemptedAt), Status: api.OrNull(d.Status), Answer: d.Answer, Failure: api.OrNull(d.Failure), Payload: json.RawMessage(d.Body),
	}
	if d.State == Pending {
		shown.NextAt = api.Optional(d.NextAt)
	}
	return shown
}

func placeOfDelivery(d Delivery) query.Position { return query.Position{At: d.CreatedAt, ID: d.ID} }

func (a API) listDeliveries(w http.ResponseWriter, r *http.Request, of Listed) error {
	before, limit, err := api.PageOf(r, "state")
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

func (a API) replayFailed(w http.ResponseWriter, r *http.Request, of Ref) error {
	var body struct {
		Since time.Time `json:"since"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	replayed, err := a.deliveries.ReplayFailed(r.Context(), request, of, body.Since)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusAccepted, map[string]int64{"replayed": replayed})
	return nil
}
