package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/grants"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func grantOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/grants",
			Handle: lists(placeOf, func(ctx context.Context, organization string, page page[postgres.GrantCursor]) ([]ledger.Grant, error) {
				return a.Grants.List(ctx, organization, page.after, page.limit+1)
			}, newGrantBody, postgres.CursorOf),
			ID: "listGrants", Scopes: []string{ScopeRead},
			Summary: "What an organization may use beside its plan, the latest first",
			Query:   httpapi.Page{},
			Answer:  openapi.Answer{Type: httpapi.List[grantBody]{}},
		},
		{
			Route:  "POST /v1/organizations/{organization}/grants",
			Handle: changes(http.StatusCreated, a.grant, newGrantBody), ID: "createGrant", Scopes: []string{ScopeWrite},
			Summary:     "Give an organization bytes beside its plan",
			Description: "It first covers what the running period has used beyond its quota.",
			Headers:     idempotent{},
			Body:        openapi.Body{Type: grantSpecBody{}},
			Answer:      openapi.Answer{Status: http.StatusCreated, Type: grantBody{}},
			Problems:    limitReached(),
		},
		{
			Route: "POST /v1/organizations/{organization}/grants/{grant}/void", Handle: a.void, ID: "voidGrant", Scopes: []string{ScopeWrite},
			Summary:     "Take back what is left of a grant",
			Description: "One of which nothing is left stays as it is.",
			Headers:     idempotent{},
			Answer:      openapi.Answer{Type: grantBody{}},
			Problems:    limitReached(),
		},
	}
}

type grantBody struct {
	ID          string    `json:"id"`
	Amount      int64     `json:"amount" description:"amount = remaining + consumed + expired + voided, once the grant has started"`
	Remaining   int64     `json:"remaining" description:"Bytes left; 0 before the grant starts"`
	Consumed    int64     `json:"consumed" description:"Bytes used"`
	Expired     int64     `json:"expired" description:"Bytes that expired unused"`
	Voided      int64     `json:"voided" description:"Bytes taken back"`
	Priority    int       `json:"priority" description:"Lower ones are used first; the plan has 100. Of equals what expires first, then the oldest"`
	StartsAt    time.Time `json:"starts_at" description:"From when on what is accepted is covered"`
	ExpiresAt   *string   `json:"expires_at" format:"date-time" description:"Until when, exclusive; null: no end"`
	RolloverCap *int64    `json:"rollover_cap" description:"How many bytes of it outlive the end of a period; null: all"`
	Source      string    `json:"source" enum:"granted,adjustment"`
	Reason      string    `json:"reason"`
	State       string    `json:"state" enum:"scheduled,active,used_up,expired,voided"`
	CreatedAt   time.Time `json:"created_at"`
}

func newGrantBody(g ledger.Grant) grantBody {
	body := grantBody{
		ID: g.ID, Amount: g.Amount, Remaining: g.Remaining, Consumed: g.Consumed, Expired: g.Expired, Voided: g.Voided, Priority: g.Priority,
		StartsAt: g.Starts, RolloverCap: g.RolloverCap, Source: "granted", Reason: g.Reason, State: grantState(g), CreatedAt: g.Created,
	}
	if g.Source == ledger.FromAdjustment {
		body.Source = "adjustment"
	}
	if !g.Expires.IsZero() {
		expires := g.Expires.Format(time.RFC3339Nano)
		body.ExpiresAt = &expires
	}
	return body
}

// grantState names the state of a grant.
func grantState(g ledger.Grant) string {
	switch {
	case g.Status == ledger.GrantScheduled:
		return "scheduled"
	case g.Status == ledger.GrantVoided:
		return "voided"
	case g.Status == ledger.GrantExpired:
		return "expired"
	case g.Remaining == 0:
		return "used_up"
	}
	return "active"
}

// grantSpecBody is a requested grant.
type grantSpecBody struct {
	Amount      int64      `json:"amount" required:"true" description:"Bytes"`
	Reason      string     `json:"reason" maxLength:"500"`
	Priority    *int       `json:"priority" minimum:"0" maximum:"1000" description:"Lower ones are used first; left out: 100, as the plan"`
	StartsAt    *time.Time `json:"starts_at" description:"Left out: now"`
	ExpiresAt   *time.Time `json:"expires_at" description:"Left out: never"`
	RolloverCap *int64     `json:"rollover_cap" description:"How many bytes of it outlive the end of a period; left out: all"`
}

func (b grantSpecBody) spec() (spec ledger.Grant, err error) {
	spec = ledger.Grant{Amount: b.Amount, Reason: b.Reason, Priority: ledger.PlanPriority, RolloverCap: b.RolloverCap}
	if b.Priority != nil {
		spec.Priority = *b.Priority
	}
	if spec.Starts, err = kept("starts_at", b.StartsAt); err != nil {
		return spec, err
	}
	spec.Expires, err = kept("expires_at", b.ExpiresAt)
	return spec, err
}

// kept rounds a field's time as the database stores it; zero where it is absent.
func kept(field string, t *time.Time) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	at := t.UTC().Truncate(time.Microsecond)
	if at.Year() < ledger.FirstYear || at.Year() > ledger.LastYear {
		return at, ledger.Invalid{Field: field, Detail: fmt.Sprintf("%s is %s.", field, at.Format(time.RFC3339)),
			Fix: fmt.Sprintf("Use a time of the years %d to %d, or leave it out.", ledger.FirstYear, ledger.LastYear)}
	}
	return at, nil
}

func (a *API) grant(ctx context.Context, organization string, request unitofwork.Request, body grantSpecBody) (made ledger.Grant, err error) {
	spec, err := body.spec()
	if err != nil {
		return made, err
	}
	return a.Grants.Grant(ctx, organization, request, spec)
}

// void takes back what is left of a grant.
func (a *API) void(w http.ResponseWriter, r *http.Request) error {
	organization, request, err := requestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "grant")
	if strings.ContainsRune(id, 0) || !utf8.ValidString(id) { // the database can't store it
		return httpapi.NotFound("grant", id)
	}
	made, err := a.Grants.Void(r.Context(), organization, request, id)
	if errors.Is(err, ledger.ErrNoGrant) {
		return httpapi.NotFound("grant", id)
	}
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newGrantBody(made))
	return nil
}

func adjustmentOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route:  "POST /v1/organizations/{organization}/adjustments",
			Handle: changes(http.StatusCreated, a.adjust, newAdjustmentBody), ID: "createAdjustment", Scopes: []string{ScopeWrite},
			Summary:     "Give back what was charged wrongly, or charge it",
			Description: "Nothing that was booked is changed: the adjustment is booked in the running period and names the other.",
			Headers:     idempotent{},
			Body:        openapi.Body{Type: adjustBody{}},
			Answer:      openapi.Answer{Status: http.StatusCreated, Type: adjustmentBody{}},
			Problems:    limitReached(),
		},
	}
}

type adjustmentBody struct {
	ID           string      `json:"id"`
	Organization string      `json:"organization"`
	Amount       int64       `json:"amount" description:"Given back, or below zero charged"`
	Reason       string      `json:"reason"`
	OfPeriod     *time.Time  `json:"of_period" description:"Start of the period that was wrong; null: none but the running one"`
	At           time.Time   `json:"at"`
	Transfers    []entryBody `json:"transfers"`
}

func newAdjustmentBody(a grants.Adjustment) adjustmentBody {
	body := adjustmentBody{ID: a.ID, Organization: a.Organization, Amount: a.Bytes, Reason: a.Reason, At: a.At, Transfers: []entryBody{}}
	if !a.Of.IsZero() {
		body.OfPeriod = &a.Of
	}
	for _, transfer := range a.Transfers {
		booked := postgres.BookedTransfer{Transfer: transfer, EffectiveAt: transfer.Effective(), BookedAt: a.At}
		body.Transfers = append(body.Transfers, newEntryBody(booked))
	}
	return body
}

// adjustBody is the error of a charge: positive amounts are credited.
// Period is any instant of its period.
type adjustBody struct {
	Amount int64      `json:"amount" required:"true" description:"Above zero: bytes that are given back, as a grant that is used first and lasts until the period ends. Below zero: bytes that are charged"`
	Reason string     `json:"reason" maxLength:"500"`
	Period *time.Time `json:"period" description:"An instant of the period that was wrong; left out: none but the running one"`
}

func (a *API) adjust(ctx context.Context, organization string, request unitofwork.Request, body adjustBody) (made grants.Adjustment, err error) {
	of, err := kept("period", body.Period)
	if err != nil {
		return made, err
	}
	return a.Grants.Adjust(ctx, organization, request, body.Amount, body.Reason, of)
}
