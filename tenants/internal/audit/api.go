package audit

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
)

// readScope is the scope of service tokens that may only read the audit.
const readScope = "audit:read"

// An API serves audits to service tokens.
type API struct {
	*api.Kit
	service *Service
}

// NewAPI returns the API of a service.
func NewAPI(kit *api.Kit, service *Service) API { return API{kit, service} }

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/audit-events", Handle: a.list, ID: "listAuditEvents", Scopes: []string{readScope, api.AdminScope},
			Summary: "The audit of an organization: who decided what, when and from where",
			Description: "Newest first. Lines are numbered without gaps, and hash is SHA-256 over the hash before and what the line says, " +
				"each part as a netstring: organization, sequence, at (UTC, six digits of fraction), action, actor kind, actor, " +
				"actor name, role, address, client, request, target kind, target, target name, before, after (their JSON text, empty " +
				"for null), stream, version, position. 64 zeros stand before the first.",
			Query: listQuery{},
			Answer: openapi.Answer{Type: httpapi.List[auditEventJSON]{}, Description: "A page, from new to old; or everything as CSV (RFC 4180, with a header line). " +
				"In CSV a field that a spreadsheet could take for a formula has an apostrophe before it", Texts: []openapi.Text{
				{Media: httpapi.TypeCSV, Description: "Everything that matches"},
			}},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
	}
}

type auditEventJSON struct {
	Organization string          `json:"organization"`
	Sequence     int64           `json:"sequence" minimum:"1" description:"Without gaps in an organization"`
	At           time.Time       `json:"at"`
	Action       string          `json:"action" examples:"[\"api_key.revoked\"]"`
	Actor        actorJSON       `json:"actor"`
	Address      *string         `json:"address" description:"IP address of the client"`
	Client       *string         `json:"client" description:"What the client said it is"`
	RequestID    *string         `json:"request_id"`
	Target       targetJSON      `json:"target"`
	Before       json.RawMessage `json:"before" type:"object" nullable:"true" description:"What everybody who reads the audit may know of the target: never a secret nor its hash. null: there was, or is, nothing"`
	After        json.RawMessage `json:"after" type:"object" nullable:"true" description:"What everybody who reads the audit may know of the target: never a secret nor its hash. null: there was, or is, nothing"`
	Event        eventJSON       `json:"event"`
	Hash         string          `json:"hash" pattern:"^[0-9a-f]{64}$"`
}

type actorJSON struct {
	Kind string  `json:"kind" enum:"member,api_key,service_token,configuration,system"`
	ID   string  `json:"id"`
	Name *string `json:"name" description:"At the time"`
	Role *string `json:"role" description:"Of a member, at the time"`
}

type targetJSON struct {
	Kind string  `json:"kind"`
	ID   string  `json:"id"`
	Name *string `json:"name" description:"At the time"`
}

// eventJSON is the position of a line's event. It is part of the hash.
type eventJSON struct {
	Stream   string `json:"stream"`
	Version  int64  `json:"version"`
	Position int64  `json:"position"`
}

func show(e tenants.AuditEvent) auditEventJSON {
	return auditEventJSON{
		Organization: e.Organization, Sequence: e.Sequence, At: e.At.UTC(), Action: e.Action,
		Actor:   actorJSON{string(e.Origin.Kind), e.Origin.Actor, httpapi.OrNull(e.ActorName), httpapi.OrNull(string(e.Origin.Role))},
		Address: httpapi.OrNull(e.Origin.Address), Client: httpapi.OrNull(e.Origin.Client), RequestID: httpapi.OrNull(e.Origin.Request),
		Target: targetJSON{e.Target.Kind, e.Target.ID, httpapi.OrNull(e.Target.Name)}, Before: object(e.Before), After: object(e.After),
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
	if err := openapi.OnlyKnown(r, exportQuery{}); err != nil {
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

// exportQuery is the query of everything that matches.
type exportQuery struct {
	Organization string    `query:"organization" maxLength:"64" description:"Left out: the one that the token is bound to. An operator may ask for *, the installation itself"`
	Actor        string    `query:"actor" maxLength:"64" description:"Id of who decided"`
	Action       string    `query:"action" pattern:"^[a-z_]+\\.[a-z_]+$" description:"Such as api_key.revoked"`
	Target       string    `query:"target" maxLength:"64" description:"Id of what was changed"`
	From         time.Time `query:"from" description:"The first instant, RFC 3339 in UTC"`
	To           time.Time `query:"to" description:"The first instant that is too late, RFC 3339 in UTC"`
	Format       string    `query:"format" enum:"json,csv" description:"csv: everything that matches, as with Accept: text/csv; without limit and cursor"`
}

// listQuery is the query of a page.
type listQuery struct {
	exportQuery
	httpapi.Page
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
	page, err := httpapi.ParsePage(r)
	if err != nil || page.Cursor == "" {
		return 0, page.Limit, err
	}
	err = httpapi.DecodeCursor(r, page.Cursor, &before)
	return before, page.Limit, err
}

// csvPage is how many lines are read at once.
const csvPage = 1000

// perPage is how long the client may take for one page.
const perPage = time.Minute

// csvHeader names the columns. It is part of the format.
var csvHeader = []string{
	"sequence", "at", "organization", "action", "actor_kind", "actor", "actor_name", "role", "address", "client", "request",
	"target_kind", "target", "target_name", "before", "after", "hash",
}

// serveCSV responds with CSV (RFC 4180): first, and all lines
// that next returns after a number, until there are none. An
// error aborts the connection: a cut file must not look complete.
func serveCSV(w http.ResponseWriter, organization string, first []tenants.AuditEvent, next func(before int64) ([]tenants.AuditEvent, error)) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(organization)))
	w.Header().Set("Cache-Control", "no-store")
	control, out := http.NewResponseController(w), csv.NewWriter(w)
	out.UseCRLF = true
	err := out.Write(csvHeader)
	for lines := first; err == nil && len(lines) > 0; {
		_ = control.SetWriteDeadline(time.Now().Add(perPage)) //nolint:forbidigo // the connection's deadline
		for _, line := range lines {
			_ = out.Write(row(line)) // Error returns it
		}
		out.Flush()
		if err = out.Error(); err == nil {
			lines, err = next(lines[len(lines)-1].Sequence)
		}
	}
	if out.Flush(); err != nil || out.Error() != nil {
		panic(http.ErrAbortHandler)
	}
}

func fileName(organization string) string {
	if organization == tenants.Installation {
		organization = "installation"
	}
	return "audit-" + organization + ".csv"
}

func row(e tenants.AuditEvent) []string {
	fields := []string{
		strconv.FormatInt(e.Sequence, 10), e.At.UTC().Format(time.RFC3339Nano), e.Organization, e.Action, string(e.Origin.Kind),
		e.Origin.Actor, e.ActorName, string(e.Origin.Role), e.Origin.Address, e.Origin.Client, e.Origin.Request, e.Target.Kind,
		e.Target.ID, e.Target.Name, e.Before, e.After, e.Hash,
	}
	for i, field := range fields {
		fields[i] = httpapi.CSVText(field)
	}
	return fields
}
