package audit

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
)

// readScope is the scope of service tokens that may only read the audit.
const readScope = "audit:read"

// OpenAPI describes the routes of the room.
//
//go:embed openapi.json
var OpenAPI []byte

// An API serves audits to service tokens.
type API struct {
	*api.Kit
	service *Service
}

// NewAPI returns the API of a service.
func NewAPI(kit *api.Kit, service *Service) API { return API{kit, service} }

// Mount adds the route, which the scope audit:read may use, too.
func (a API) Mount(router chi.Router) {
	router.With(a.Guard.RequireScope(readScope, api.AdminScope)).Get("/v1/audit-events", a.Handler())
}

// Handler is the handler of the route.
func (a API) Handler() http.HandlerFunc { return httpapi.Handle(a.list) }

type lineJSON struct {
	Organization string          `json:"organization"`
	Sequence     int64           `json:"sequence"`
	At           time.Time       `json:"at"`
	Action       string          `json:"action"`
	Actor        actorJSON       `json:"actor"`
	Address      *string         `json:"address"`
	Client       *string         `json:"client"`
	RequestID    *string         `json:"request_id"`
	Target       targetJSON      `json:"target"`
	Before       json.RawMessage `json:"before"`
	After        json.RawMessage `json:"after"`
	Event        eventJSON       `json:"event"`
	Hash         string          `json:"hash"`
}

type actorJSON struct {
	Kind string  `json:"kind"`
	ID   string  `json:"id"`
	Name *string `json:"name"`
	Role *string `json:"role"`
}

type targetJSON struct {
	Kind string  `json:"kind"`
	ID   string  `json:"id"`
	Name *string `json:"name"`
}

// eventJSON is the position of a line's event. It is part of the hash.
type eventJSON struct {
	Stream   string `json:"stream"`
	Version  int64  `json:"version"`
	Position int64  `json:"position"`
}

func show(e tenants.AuditEvent) lineJSON {
	return lineJSON{
		Organization: e.Organization, Sequence: e.Sequence, At: e.At.UTC(), Action: e.Action,
		Actor:   actorJSON{string(e.Origin.Kind), e.Origin.Actor, api.OrNull(e.ActorName), api.OrNull(string(e.Origin.Role))},
		Address: api.OrNull(e.Origin.Address), Client: api.OrNull(e.Origin.Client), RequestID: api.OrNull(e.Origin.Request),
		Target: targetJSON{e.Target.Kind, e.Target.ID, api.OrNull(e.Target.Name)}, Before: object(e.Before), After: object(e.After),
		Event: eventJSON{e.Stream, e.Version, e.Position}, Hash: e.Hash,
	}
}

func object(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(text)
}

func (a API) list(w http.ResponseWriter, r *http.Request) error {
	asCSV, err := wantsCSV(r)
	if err != nil {
		return err
	}
	filter, err := filterOf(r)
	if err != nil {
		return err
	}
	if asCSV {
		return a.export(w, r, filter)
	}
	before, limit, err := pageOf(r)
	if err != nil {
		return err
	}
	found, err := a.service.Events(r.Context(), api.CallerOf(r), filter, before, limit+1)
	if err != nil {
		return problemIn(err, filter)
	}
	httpapi.WriteList(w, r, found, limit, show, func(e tenants.AuditEvent) int64 { return e.Sequence })
	return nil
}

// export writes all that matches.
func (a API) export(w http.ResponseWriter, r *http.Request, filter tenants.AuditFilter) error {
	if err := httpapi.OnlyKnown(r, nil, append(filters(), "format")...); err != nil {
		return err
	}
	next := func(before int64) ([]tenants.AuditEvent, error) {
		return a.service.Events(r.Context(), api.CallerOf(r), filter, before, csvPage)
	}
	first, err := next(0)
	if err != nil {
		return problemIn(err, filter)
	}
	serveCSV(w, filter.Organization, first, next)
	return nil
}

// problemIn is the response to an error about a filter in the query.
func problemIn(err error, filter tenants.AuditFilter) error {
	problem := api.ProblemOf(err, "organization", filter.Organization)
	var invalid *httpapi.Problem
	if errors.As(problem, &invalid) {
		for i := range invalid.Faults {
			invalid.Faults[i].Pointer = "?" + strings.TrimPrefix(invalid.Faults[i].Pointer, "/")
		}
	}
	return problem
}

// wantsCSV reports whether to respond with CSV,
// by the parameter format or the header Accept.
func wantsCSV(r *http.Request) (bool, error) {
	switch format := r.URL.Query().Get("format"); format {
	case "csv":
		return true, nil
	case "json":
		return false, nil
	case "":
		return slices.ContainsFunc(strings.Split(strings.Join(r.Header.Values("Accept"), ","), ","), isCSV), nil
	default:
		return false, httpapi.Invalid("?format", httpapi.CodeInvalidRequest, fmt.Sprintf("format is %q.", format), "Use csv or json.")
	}
}

func isCSV(accepted string) bool {
	kind, _, _ := strings.Cut(accepted, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/csv")
}

func filters() []string {
	return []string{"organization", "actor", "action", "target", "from", "to"}
}

func filterOf(r *http.Request) (filter tenants.AuditFilter, err error) {
	given := r.URL.Query()
	filter = tenants.AuditFilter{
		Organization: api.OrganizationOf(r), Actor: given.Get("actor"), Action: given.Get("action"), Target: given.Get("target"),
	}
	if filter.From, err = httpapi.QueryTime(given, "from"); err != nil {
		return filter, err
	}
	filter.To, err = httpapi.QueryTime(given, "to")
	return filter, err
}

// pageOf reads where the list continues, and its limit.
func pageOf(r *http.Request) (before int64, limit int, err error) {
	if err := httpapi.OnlyKnown(r, nil, append(filters(), "format", "limit", "cursor")...); err != nil {
		return 0, 0, err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil || page.Cursor == "" {
		return 0, page.Limit, err
	}
	err = httpapi.DecodeCursor(r, page.Cursor, &before)
	return before, page.Limit, err
}
