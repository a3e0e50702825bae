package isolation

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/tenants"
)

// A policy states who may use a route, and how the test uses it. A
// route has several for different things in its path or body.
type policy struct {
	route string // as the router has it
	who   gate   // who gets through; all others are refused, and nothing happens

	// How it is used, always with things of tenant A: {project} is A's
	// project, {new-key} a key made for this call; all are in
	// tenant_test.go. Permitted callers of tenant B get 404, as for
	// unknown ids; where the request names nothing, B gets its own.
	path string // with its query; "": the route itself, its parameters named like the things
	body string // JSON for the API, a form for the console
	want int    // how those are answered who get through; 0: 200

	ends bool // it ends or replaces the caller's session: each call has one of its own
}

// sourceMap is the smallest source map.
const sourceMap = `{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}`

// entriesOf is a log entry of which it is asked whether it is of a group.
const entriesOf = `{"items":[{"id":"none","project":"none","environment":"","received_at":"2026-11-21T09:30:00Z","entry":{"error":{"type":"E"}}}]}`

// alertForm is the rest of a form of an alert on errors.
const alertForm = "name=A&triggers=new&new_from=1&gap_seconds=300"

// Paths that take what other protocols than ours send, and such a request.
const (
	lokiPath     = "/v1/loki/api/v1/push"
	lokiPush     = `{"streams":[{"stream":{},"values":[["1769860800000000000","Anybody"]]}]}`
	bulkPath     = "/v1/elastic/_bulk"
	bulkDocument = `{"create":{}}` + "\n" + `{"message":"Anybody"}`

	otlpPath   = "/v1/otlp/v1/logs"
	otlpRecord = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"Anybody"}}]}]}]}`
)

// policies states who may use which route. A new route needs a new line.
var policies = []policy{
	// Everybody, without a credential.
	{route: "GET /", who: everybody, want: 303},
	{route: "GET /docs", who: everybody},
	{route: "GET /healthz", who: everybody},
	{route: "GET /readyz", who: everybody},
	{route: "GET /v1/openapi.json", who: everybody},
	{route: "GET /v1/openapi-3.0.json", who: everybody},

	// Entries: an API key reads those of its whole organization, unless
	// it is restricted.
	{route: "POST /v1/logs", who: keys, body: logs("Anybody")},
	{route: "OPTIONS /v1/logs", who: everybody, want: 403},         // no key lists an origin
	{route: "OPTIONS /v1/otlp/v1/logs", who: everybody, want: 403}, // the same
	{route: "OPTIONS /v1/loki/api/v1/push", who: everybody, want: 403},
	{route: "OPTIONS /v1/elastic/_bulk", who: everybody, want: 403},
	{route: "POST " + otlpPath, who: keys, body: otlpRecord},
	{route: "POST " + lokiPath, who: keys, body: lokiPush, want: 204},
	{route: "POST " + bulkPath, who: keys, body: bulkDocument},
	{route: "PUT " + bulkPath, who: keys, body: bulkDocument},
	{route: "GET /v1/logs", who: readers},
	{route: "GET /v1/logs", who: readers, path: "/v1/logs?project={project}"},
	{route: "GET /v1/logs", who: wideReaders, path: "/v1/logs?project={second}"},
	{route: "GET /v1/logs/tail", who: readers},
	{route: "GET /v1/logs/tail", who: readers, path: "/v1/logs/tail?project={project}"},
	{route: "GET /v1/logs/tail", who: wideReaders, path: "/v1/logs/tail?project={second}"},
	{route: "GET /v1/logs/stats", who: readers, path: "/v1/logs/stats?by=message&by=project"},
	{route: "GET /v1/logs/stats", who: wideReaders, path: "/v1/logs/stats?by=message&project={second}"},
	{route: "GET /v1/logs/patterns", who: readers, path: "/v1/logs/patterns?since=-1h"},
	{route: "GET /v1/logs/patterns", who: wideReaders, path: "/v1/logs/patterns?project={second}"},

	// Saved searches and their alerts: as entries, read and written.
	{route: "GET /v1/searches", who: readers},
	{route: "GET /v1/searches", who: readers, path: "/v1/searches?project={project}"},
	{route: "GET /v1/searches", who: wideReaders, path: "/v1/searches?project={second}"},
	{route: "POST /v1/searches", who: readers, body: `{"name":"{new-email}","project":"{project}"}`, want: 201},
	{route: "GET /v1/searches/{search}", who: readers},
	{route: "GET /v1/searches/{search}", who: wideReaders, path: "/v1/searches/{second-search}"},
	{route: "PUT /v1/searches/{search}", who: readers, path: "/v1/searches/{new-search}", body: `{"name":"{new-email}","project":"{project}","version":1}`},
	{route: "DELETE /v1/searches/{search}", who: readers, path: "/v1/searches/{new-search}"},
	{route: "GET /v1/searches/{search}/alert", who: readers},
	{route: "PUT /v1/searches/{search}/alert", who: readers, path: "/v1/searches/{new-bare-search}/alert",
		body: `{"every_seconds":60,"window_seconds":60,"condition":"more_than","threshold":1}`},
	{route: "DELETE /v1/searches/{search}/alert", who: readers, path: "/v1/searches/{new-search}/alert"},
	{route: "POST /v1/searches/{search}/alert/mute", who: readers, path: "/v1/searches/{new-search}/alert/mute", body: `{"until":null}`},
	{route: "POST /v1/searches/{search}/alert/test", who: readers, path: "/v1/searches/{new-search}/alert/test", want: 202},
	{route: "GET /v1/searches/{search}/alert/evaluations", who: readers},
	{route: "GET /v1/projects/{project}/rejected-entries", who: readers},
	{route: "GET /v1/projects/{project}/rejected-entries", who: wideReaders, path: "/v1/projects/{second}/rejected-entries"},

	// Errors.
	{route: "GET /v1/projects/{project}/error-groups", who: readers},
	{route: "GET /v1/error-groups/{group}", who: readers},
	{route: "GET /v1/error-groups/{group}/similar", who: readers},
	{route: "GET /v1/error-groups/{group}/occurrences", who: readers},
	{route: "GET /v1/error-groups/{group}/occurrences", who: wideReaders, path: "/v1/error-groups/{second-group}/occurrences"},
	{route: "POST /v1/error-groups/{group}/select", who: readers, body: entriesOf},
	{route: "POST /v1/error-groups/{group}/select", who: wideReaders, path: "/v1/error-groups/{second-group}/select", body: entriesOf},
	{route: "GET /v1/error-groups/{group}/activity", who: readers},
	{route: "GET /v1/error-groups/{group}/counts", who: readers},
	{route: "GET /v1/projects/{project}/error-settings", who: readers},
	{route: "PUT /v1/projects/{project}/error-settings", who: deciders, body: `{"user":["user.id"]}`},
	{route: "GET /v1/projects/{project}/error-owners", who: readers},
	{route: "PUT /v1/projects/{project}/error-owners", who: deciders, body: `{"rules":[{"path":"src/**","assignee":"shop"}]}`},
	{route: "POST /v1/projects/{project}/error-owners/apply", who: deciders},
	{route: "GET /v1/projects/{project}/ingest-rules", who: readers},
	{route: "GET /v1/projects/{project}/ingest-rules", who: wideReaders, path: "/v1/projects/{second}/ingest-rules"},
	{route: "PUT /v1/projects/{project}/ingest-rules", who: deciders, body: `{"rules":"redact email"}`},
	{route: "POST /v1/projects/{project}/ingest-rules/preview", who: readers, body: `{"rules":"redact ip"}`},
	{route: "GET /v1/projects/{project}/ingest-rules/versions", who: readers},
	{route: "GET /v1/projects/{project}/ingest-rules/versions/{version}", who: readers, path: "/v1/projects/{project}/ingest-rules/versions/1"},
	{route: "POST /v1/projects/{project}/ingest-rules/versions/{version}/restore", who: deciders, path: "/v1/projects/{project}/ingest-rules/versions/1/restore", body: `{}`},
	{route: "GET /v1/projects/{project}/error-rules", who: readers},
	{route: "GET /v1/projects/{project}/error-rules", who: wideReaders, path: "/v1/projects/{second}/error-rules"},
	{route: "PUT /v1/projects/{project}/error-rules", who: deciders, body: `{"rules":"scrub email"}`},
	{route: "POST /v1/projects/{project}/error-rules/preview", who: readers, body: `{"rules":"scrub ip"}`},
	{route: "GET /v1/projects/{project}/error-rules/versions", who: readers},
	{route: "GET /v1/projects/{project}/error-rules/versions/{version}", who: readers, path: "/v1/projects/{project}/error-rules/versions/1"},
	{route: "POST /v1/projects/{project}/error-rules/versions/{version}/restore", who: deciders, path: "/v1/projects/{project}/error-rules/versions/1/restore", body: `{}`},
	{route: "PATCH /v1/error-groups/{group}", who: deciders, body: `{"note":"seen","external_links":[{"url":"https://tracker.example/1"}]}`},
	{route: "POST /v1/error-groups/{group}/merge", who: deciders, body: `{"into":"{group}"}`},
	{route: "POST /v1/error-groups/{group}/unmerge", who: deciders, body: `{"groups":["{group}"]}`},
	{route: "POST /v1/error-groups/{group}/split", who: deciders, body: `{"hash":"none"}`, want: 400},
	{route: "PATCH /v1/projects/{project}/error-groups", who: deciders, body: `{"assignee":"checkout"}`},
	{route: "GET /v1/projects/{project}/error-alerts", who: readers},
	{route: "GET /v1/projects/{project}/error-alerts", who: wideReaders, path: "/v1/projects/{second}/error-alerts"},
	{route: "POST /v1/projects/{project}/error-alerts", who: deciders, body: `{"name":"A","triggers":["new"]}`, want: 201},
	{route: "GET /v1/projects/{project}/error-alerts/{alert}", who: readers},
	{route: "GET /v1/projects/{project}/error-alerts/{alert}/log", who: readers},
	{route: "PUT /v1/projects/{project}/error-alerts/{alert}", who: deciders, path: "/v1/projects/{project}/error-alerts/{new-alert}",
		body: `{"name":"B","triggers":["new"],"version":1}`},
	{route: "POST /v1/projects/{project}/error-alerts/{alert}/test", who: deciders, path: "/v1/projects/{project}/error-alerts/{new-alert}/test", want: 202},
	{route: "DELETE /v1/projects/{project}/error-alerts/{alert}", who: deciders, path: "/v1/projects/{project}/error-alerts/{new-alert}"},
	{route: "GET /v1/projects/{project}/error-groups", who: wideReaders, path: "/v1/projects/{second}/error-groups"},
	{route: "POST /v1/projects/{project}/source-maps", who: readers, path: "/v1/projects/{project}/source-maps?release=1&name=app.js", body: sourceMap, want: 201},
	{route: "POST /v1/projects/{project}/source-maps", who: wideReaders, path: "/v1/projects/{second}/source-maps?release=1&name=app.js", body: sourceMap, want: 201},
	{route: "GET /v1/projects/{project}/source-maps", who: readers},
	{route: "GET /v1/projects/{project}/source-maps", who: wideReaders, path: "/v1/projects/{second}/source-maps"},
	{route: "DELETE /v1/projects/{project}/source-maps/{map}", who: readers, path: "/v1/projects/{project}/source-maps/{new-map}"},
	{route: "GET /v1/error-groups/{group}", who: wideReaders, path: "/v1/error-groups/{second-group}"},

	// Books: a token of the organization, or the operator's.
	{route: "GET /v1/organizations/{organization}/balance", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/entries", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/chain", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/verification", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/usage", who: tokens("billing:read")},
	{route: "GET /v1/accounts", who: billingOperators},
	{route: "GET /v1/organizations/{organization}/refusals", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/subscription", who: tokens("billing:read")},
	{route: "PUT /v1/organizations/{organization}/subscription", who: tokens("billing:write"), body: `{"tier":"scale"}`},
	{route: "GET /v1/organizations/{organization}/budgets", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/thresholds", who: tokens("billing:read")},
	{route: "PUT /v1/organizations/{organization}/thresholds", who: tokens("billing:write"), body: `{"percents":[50,90]}`},
	{route: "GET /v1/organizations/{organization}/test-clock", who: tokens("billing:read")},
	{route: "PUT /v1/organizations/{organization}/test-clock", who: tokens("billing:write"), body: `{"at":"2020-01-01T00:00:00Z"}`, want: 400},
	{route: "POST /v1/organizations/{organization}/test-clock/use", who: tokens("billing:write"), body: `{"bytes":1}`, want: 400}, // it is none
	{route: "PUT /v1/organizations/{organization}/budgets", who: tokens("billing:write"), body: `[{"project":"{project}","bytes":1000000000}]`},
	{route: "DELETE /v1/organizations/{organization}/budgets", who: tokens("billing:write"), path: "/v1/organizations/{organization}/budgets?project={project}"},
	{route: "GET /v1/organizations/{organization}/grants", who: tokens("billing:read")},
	{route: "POST /v1/organizations/{organization}/grants", who: tokens("billing:write"), body: `{"amount":1}`, want: 201},
	{route: "POST /v1/organizations/{organization}/grants/{grant}/void", who: tokens("billing:write"), path: "/v1/organizations/{organization}/grants/{grant}/void"},
	{route: "POST /v1/organizations/{organization}/adjustments", who: tokens("billing:write"), body: `{"amount":1}`, want: 201},

	{route: "GET /v1/organizations/{organization}/statements", who: tokens("billing:read")},
	{route: "GET /v1/organizations/{organization}/statements/{statement}", who: tokens("billing:read"), path: "/v1/organizations/{organization}/statements/1",
		want: 404}, // no period has closed
	{route: "GET /v1/organizations/{organization}/forecast", who: tokens("billing:read")},
	{route: "POST /v1/organizations/{organization}/dry-run", who: tokens("billing:read"), body: `{"bytes":1}`},
	{route: "POST /v1/organizations/{organization}/simulation", who: tokens("billing:read"), body: `{"tier":"scale"}`},

	// Organizations and what belongs to them.
	{route: "POST /v1/organizations", who: operators, body: `{"name":"C","tier":"indie"}`, want: 201},
	{route: "GET /v1/organizations", who: tokens("tenants:admin")},
	{route: "POST /v1/projects", who: tokens("tenants:admin"), body: `{"organization":"{organization}","name":"P"}`, want: 201},
	{route: "GET /v1/projects", who: tokens("tenants:admin"), path: "/v1/projects?organization={organization}"},
	{route: "POST /v1/api-keys", who: tokens("tenants:admin"), body: `{"project":"{project}","environment":"dev","name":"K"}`, want: 201},
	{route: "GET /v1/api-keys", who: tokens("tenants:admin"), path: "/v1/api-keys?project={project}"},
	{route: "POST /v1/api-keys/{id}/revoke", who: tokens("tenants:admin"), path: "/v1/api-keys/{new-key}/revoke", body: `{"reason":"test"}`},
	{route: "GET /v1/api-keys/{id}", who: tokens("tenants:admin"), path: "/v1/api-keys/{key}"},
	{route: "PATCH /v1/api-keys/{id}", who: tokens("tenants:admin"), path: "/v1/api-keys/{key}", body: `{"rate_per_minute":1000}`},
	{route: "POST /v1/api-keys/{id}/rotate", who: tokens("tenants:admin"), path: "/v1/api-keys/{new-key}/rotate", want: 201},
	{route: "GET /v1/organizations/{id}/security-policy", who: tokens("tenants:admin"), path: "/v1/organizations/{organization}/security-policy"},
	{route: "PUT /v1/organizations/{id}/security-policy", who: tokens("tenants:admin"), path: "/v1/organizations/{organization}/security-policy",
		body: `{"leaked_keys":"notify","plain_http_keys":"flag"}`},
	{route: "POST /v1/leak-reports", who: everybody, body: `[]`, want: 404}, // it is signed, and off unless configured
	{route: "POST /v1/service-tokens", who: tokens("tenants:admin"), body: `{"organization":"{organization}","name":"T","scopes":["tenants:admin"]}`, want: 201},
	{route: "GET /v1/service-tokens", who: tokens("tenants:admin"), path: "/v1/service-tokens?organization={organization}"},
	{route: "POST /v1/service-tokens/{id}/revoke", who: tokens("tenants:admin"), path: "/v1/service-tokens/{new-token}/revoke", body: `{"reason":"test"}`},
	{route: "GET /v1/audit-events", who: tokens("audit:read", "tenants:admin"), path: "/v1/audit-events?organization={organization}"},
	{route: "GET /v1/organizations/{id}", who: tokens("tenants:admin"), path: "/v1/organizations/{organization}"},
	{route: "PATCH /v1/organizations/{id}", who: tokens("tenants:admin"), path: "/v1/organizations/{organization}", body: `{"name":"Renamed"}`},
	{route: "PATCH /v1/projects/{id}", who: tokens("tenants:admin"), path: "/v1/projects/{project}", body: `{"name":"Renamed"}`},
	{route: "DELETE /v1/organizations/{id}", who: operators, path: "/v1/organizations/{new-organization}", want: 202},
	{route: "POST /v1/organizations/{id}/restore", who: operators, path: "/v1/organizations/{organization}/restore", want: 404}, // is not deleted
	{route: "DELETE /v1/projects/{id}", who: operators, path: "/v1/projects/{new-project}", want: 202},
	{route: "POST /v1/projects/{id}/restore", who: operators, path: "/v1/projects/{project}/restore", want: 404},
	{route: "GET /v1/deletions", who: tokens("tenants:admin"), path: "/v1/deletions?organization={organization}"},
	{route: "GET /v1/members", who: tokens("tenants:admin"), path: "/v1/members?organization={organization}"},
	{route: "PATCH /v1/members/{id}", who: tokens("tenants:admin"), path: "/v1/members/{new-member}", body: `{"role":"billing"}`},
	{route: "POST /v1/members/{id}/remove", who: tokens("tenants:admin"), path: "/v1/members/{new-member}/remove"},
	{route: "POST /v1/members/{id}/reset-code", who: tokens("tenants:admin"), path: "/v1/members/{new-member}/reset-code", want: 201},
	{route: "GET /v1/api-keys", who: tokens("tenants:admin"), path: "/v1/api-keys?organization={organization}"},
	{route: "POST /v1/invitations", who: tokens("tenants:admin"), body: `{"organization":"{organization}","email":"{new-email}","role":"viewer"}`, want: 201},
	{route: "GET /v1/invitations", who: tokens("tenants:admin"), path: "/v1/invitations?organization={organization}"},
	{route: "POST /v1/invitations/{id}/resend", who: tokens("tenants:admin"), path: "/v1/invitations/{new-invitation}/resend"},
	{route: "POST /v1/invitations/{id}/revoke", who: tokens("tenants:admin"), path: "/v1/invitations/{new-invitation}/revoke"},
	{route: "POST /v1/members", who: operators, want: 201,
		body: `{"organization":"{organization}","email":"{new-email}","name":"M","role":"viewer","password":"correct horse battery"}`},

	// Webhooks: billing and administrators.
	{route: "GET /v1/organizations/{organization}/webhooks", who: tokens("billing:write", "tenants:admin")},
	{route: "POST /v1/organizations/{organization}/webhooks", who: tokens("billing:write", "tenants:admin"), body: `{"url":"https://hooks.invalid","events":["quota.exhausted"]}`, want: 201},
	{route: "GET /v1/organizations/{organization}/webhooks/{webhook}", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{webhook}"},
	{route: "PATCH /v1/organizations/{organization}/webhooks/{webhook}", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{new-webhook}", body: `{"state":"off"}`},
	{route: "DELETE /v1/organizations/{organization}/webhooks/{webhook}", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{new-webhook}"},
	{route: "POST /v1/organizations/{organization}/webhooks/{webhook}/rotate", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{new-webhook}/rotate"},
	{route: "POST /v1/organizations/{organization}/webhooks/{webhook}/test", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{webhook}/test", want: 202},
	{route: "POST /v1/organizations/{organization}/webhooks/{webhook}/replay", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{webhook}/replay", body: `{"since":"2026-11-20T00:00:00Z"}`, want: 202},
	{route: "GET /v1/organizations/{organization}/webhooks/{webhook}/deliveries", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{webhook}/deliveries"},
	{route: "POST /v1/organizations/{organization}/webhooks/{webhook}/deliveries/{delivery}/replay", who: tokens("billing:write", "tenants:admin"),
		path: "/v1/organizations/{organization}/webhooks/{webhook}/deliveries/{new-delivery}/replay", want: 202},

	// Sessions of members.
	{route: "GET /v1/sessions", who: tokens("tenants:admin"), path: "/v1/sessions?member={member}"},
	{route: "POST /v1/sessions/{id}/revoke", who: tokens("tenants:admin"), path: "/v1/sessions/{new-session}/revoke", body: `{"reason":"test"}`},

	// The console before the sign-in, and the assets of its pages.
	{route: "GET /console", who: visitors, want: 303},
	{route: "GET /console/*", who: visitors, path: "/console/nothing", want: 404},
	{route: "GET /console/sign-in", who: visitors},
	{route: "POST /console/sign-in", who: visitors, body: "email={new-email}&password=wrong", want: 422, ends: true},
	{route: "POST /console/sign-out", who: visitors, want: 303, ends: true},
	{route: "GET /console/sign-in/oidc", who: visitors, want: 404}, // there is no identity provider here
	{route: "GET /console/sign-in/oidc/callback", who: visitors, want: 404},
	{route: "POST /console/sign-in/passkey/options", who: visitors},
	{route: "POST /console/sign-in/passkey", who: visitors, body: "credential=none", want: 422, ends: true},
	{route: "GET /console/welcome", who: visitors},
	{route: "POST /console/welcome", who: visitors, body: "code={new-email}", want: 422},
	{route: "GET /console/join", who: visitors},
	{route: "POST /console/join", who: visitors, body: "code={new-email}", want: 422},
	{route: "GET /console/reset", who: visitors},
	{route: "POST /console/reset", who: visitors, body: "code={new-email}", want: 422},
	{route: "GET /console/unsubscribe", who: visitors, want: 404},  // with a link that nobody has signed
	{route: "POST /console/unsubscribe", who: visitors, want: 404}, // the same
	{route: "GET /console/assets/{version}/{name}", who: visitors, path: "/console/assets/1/weir.css"},

	// The console: what members see and do, by their role's permission.
	{route: "GET /console/overview", who: members(tenants.ProjectsRead)},
	{route: "GET /console/overview", who: members(tenants.ProjectsRead), path: "/console/overview?project={project}"},
	{route: "GET /console/logs/overview", who: members(tenants.LogsRead), path: "/console/logs/overview?project={project}"},
	{route: "GET /console/errors/overview", who: members(tenants.ErrorsRead), path: "/console/errors/overview?project={project}"},
	{route: "GET /console/usage/overview", who: members(tenants.UsageRead)},
	{route: "GET /console/logs", who: members(tenants.LogsRead)},
	{route: "GET /console/logs", who: members(tenants.LogsRead), path: "/console/logs?project={project}"},
	{route: "GET /console/logs/entry", who: members(tenants.LogsRead), path: "/console/logs/entry?project={project}&id={entry}&time=2026-11-21T09:30:00Z"},
	{route: "GET /console/logs/entries", who: members(tenants.LogsRead)},
	{route: "GET /console/logs/entries", who: members(tenants.LogsRead), path: "/console/logs/entries?project={project}"},
	{route: "GET /console/logs/tail", who: members(tenants.LogsRead)},
	{route: "GET /console/logs/tail", who: members(tenants.LogsRead), path: "/console/logs/tail?project={project}"},
	{route: "GET /console/logs/csv", who: members(tenants.LogsRead)},
	{route: "GET /console/logs/ndjson", who: members(tenants.LogsRead), path: "/console/logs/ndjson?project={project}"},
	{route: "GET /console/logs/rejected", who: members(tenants.LogsRead)},
	{route: "GET /console/logs/rejected", who: members(tenants.LogsRead), path: "/console/logs/rejected?project={project}"},
	{route: "GET /console/logs/searches", who: members(tenants.LogsRead)},
	{route: "GET /console/logs/searches/new", who: members(tenants.LogsRead), path: "/console/logs/searches/new?q=x&last=1h"},
	{route: "POST /console/logs/searches/new", who: members(tenants.LogsRead), body: "name={new-email}&last=1h", want: 303},
	{route: "POST /console/logs/searches/new", who: members(tenants.SearchesShare), body: "name={new-email}&last=1h&shared=everybody", want: 303},
	{route: "GET /console/logs/searches/{id}/edit", who: members(tenants.SearchesShare), path: "/console/logs/searches/{search}/edit"},
	{route: "POST /console/logs/searches/{id}/edit", who: members(tenants.SearchesShare), path: "/console/logs/searches/{new-search}/edit",
		body: "name={new-email}&last=1h&shared=everybody&version=1", want: 303},
	{route: "POST /console/logs/searches/{id}/delete", who: members(tenants.SearchesShare), path: "/console/logs/searches/{new-search}/delete", body: "version=1", want: 303},
	{route: "GET /console/logs/searches/{id}/alert", who: members(tenants.LogsRead), path: "/console/logs/searches/{search}/alert"},
	{route: "POST /console/logs/searches/{id}/alert", who: members(tenants.SearchesShare), path: "/console/logs/searches/{new-bare-search}/alert",
		body: "condition=more&threshold=1&window=60&every=60&times=1&quiet=0&examples=0&version=0", want: 303},
	{route: "POST /console/logs/searches/{id}/alert/mute", who: members(tenants.SearchesShare), path: "/console/logs/searches/{new-search}/alert/mute", body: "for=3600", want: 303},
	{route: "POST /console/logs/searches/{id}/alert/test", who: members(tenants.SearchesShare), path: "/console/logs/searches/{new-search}/alert/test", want: 303},
	{route: "POST /console/logs/searches/{id}/alert/delete", who: members(tenants.SearchesShare), path: "/console/logs/searches/{new-search}/alert/delete", body: "version=1", want: 303},
	{route: "GET /console/logs/rules", who: members(tenants.LogsRead), path: "/console/logs/rules?project={project}"},
	{route: "POST /console/logs/rules", who: members(tenants.SearchesShare), body: "project={project}&version=1&rules=redact+email&do=save", want: 303},
	{route: "GET /console/errors", who: members(tenants.ErrorsRead)},
	{route: "GET /console/errors", who: members(tenants.ErrorsRead), path: "/console/errors?project={project}"},
	{route: "GET /console/errors/source-maps", who: members(tenants.ErrorsRead), path: "/console/errors/source-maps?project={project}"},
	{route: "GET /console/errors/rules", who: members(tenants.ErrorsRead), path: "/console/errors/rules?project={project}"},
	{route: "POST /console/errors/rules", who: members(tenants.ErrorsDecide), body: "project={project}&version=1&rules=scrub+email&do=save", want: 303},
	{route: "GET /console/errors/{group}", who: members(tenants.ErrorsRead)},
	{route: "GET /console/errors/{group}/occurrences", who: members(tenants.ErrorsRead)},
	{route: "POST /console/errors/{group}/occurrences", who: members(tenants.ErrorsRead), body: entriesOf},
	{route: "POST /console/errors/{group}/select", who: members(tenants.ErrorsRead), body: entriesOf},
	{route: "POST /console/errors/{group}/decide", who: members(tenants.ErrorsDecide), body: "do=note&note=seen", want: 303},
	{route: "POST /console/errors/decide", who: members(tenants.ErrorsDecide), body: "do=reopen&group={group}", want: 303},
	{route: "GET /console/errors/settings", who: members(tenants.ErrorsRead), path: "/console/errors/settings?project={project}"},
	{route: "POST /console/errors/settings", who: members(tenants.ErrorsDecide), body: "project={project}&archive_after_days=0&user=user.id", want: 303},
	{route: "POST /console/errors/settings/owners", who: members(tenants.ErrorsDecide), body: "project={project}&rules=path:src/**+%3D%3E+shop", want: 303},
	{route: "POST /console/errors/settings/owners/apply", who: members(tenants.ErrorsDecide), body: "project={project}", want: 303},
	{route: "GET /console/errors/alerts", who: members(tenants.ErrorsRead)},
	{route: "GET /console/errors/alerts/new", who: members(tenants.ErrorsRead)},
	{route: "POST /console/errors/alerts/new", who: members(tenants.ErrorsDecide), body: "project={project}&" + alertForm, want: 303},
	{route: "GET /console/errors/alerts/{alert}", who: members(tenants.ErrorsRead)},
	{route: "POST /console/errors/alerts/{alert}", who: members(tenants.ErrorsDecide), path: "/console/errors/alerts/{new-alert}", body: "version=1&" + alertForm, want: 303},
	{route: "POST /console/errors/alerts/{alert}/mute", who: members(tenants.ErrorsDecide), path: "/console/errors/alerts/{new-alert}/mute", body: "for=3600", want: 303},
	{route: "POST /console/errors/alerts/{alert}/test", who: members(tenants.ErrorsDecide), path: "/console/errors/alerts/{new-alert}/test", want: 303},
	{route: "POST /console/errors/alerts/{alert}/delete", who: members(tenants.ErrorsDecide), path: "/console/errors/alerts/{new-alert}/delete", body: "version=1", want: 303},
	{route: "GET /console/usage", who: members(tenants.UsageRead)},
	{route: "GET /console/usage/refusals", who: members(tenants.UsageRead)},
	{route: "GET /console/usage/plan", who: members(tenants.UsageRead)},
	{route: "POST /console/usage/plan", who: members(tenants.UsageRead), body: "tier=scale", want: 404}, // nobody here runs the installation
	{route: "GET /console/usage/organizations", who: members(tenants.UsageRead), want: 404},             // nobody here runs the installation
	{route: "GET /console/usage/budgets", who: members(tenants.UsageRead)},
	{route: "POST /console/usage/budgets", who: members(tenants.BudgetsManage), body: "of=project:{project}&size=1+GiB", want: 303},
	{route: "POST /console/usage/budgets/remove", who: members(tenants.BudgetsManage), body: "of=project:{project}", want: 303},
	{route: "GET /console/usage/statements", who: members(tenants.UsageRead)},
	{route: "GET /console/usage/statements/{statement}", who: members(tenants.UsageRead), path: "/console/usage/statements/1", want: 404},
	{route: "GET /console/usage/statements/{statement}/csv", who: members(tenants.UsageRead), path: "/console/usage/statements/1/csv", want: 404},
	{route: "GET /console/session/renew", who: members(""), want: 303},
	{route: "GET /console/confirm", who: members("")},
	{route: "POST /console/confirm", who: members(""), body: "password=correct horse battery staple", want: 303, ends: true},
	{route: "POST /console/confirm/passkey/options", who: members(""), want: 422}, // nobody here has one
	{route: "POST /console/confirm/passkey", who: members(""), body: "credential=none", want: 422, ends: true},
	{route: "GET /console/settings/account/passkeys/new", who: members("")},
	{route: "POST /console/settings/account/passkeys/options", who: members("")},
	{route: "POST /console/settings/account/passkeys", who: members(""), body: "name=Laptop&credential=none", want: 422},
	{route: "GET /console/settings/account/passkeys/{id}/remove", who: members(""), path: "/console/settings/account/passkeys/pky_0/remove", want: 404},
	{route: "POST /console/settings/account/passkeys/{id}/remove", who: members(""), path: "/console/settings/account/passkeys/pky_0/remove", want: 404},
	{route: "GET /console/settings/account", who: members("")},
	{route: "POST /console/settings/account/sessions/{id}/end", who: members(""), path: "/console/settings/account/sessions/{new-session}/end", want: 404}, // somebody else's
	{route: "POST /console/settings/account/sessions/end-others", who: members(""), want: 303},
	{route: "GET /console/settings", who: members(""), want: 303},
	{route: "GET /console/settings/account/mails", who: members(tenants.MailsReceive)},
	{route: "POST /console/settings/account/mails", who: members(tenants.MailsReceive), body: "mails=threshold", want: 303},
	{route: "GET /console/settings/account/password", who: members("")},
	{route: "POST /console/settings/account/password", who: members(""), body: "current_password=wrong&password=correct+horse+battery", want: 422},
	{route: "GET /console/settings/members", who: members(tenants.MembersRead)},
	{route: "GET /console/settings/members/{id}", who: members(tenants.MembersManage), path: "/console/settings/members/{member}"},
	{route: "POST /console/settings/members/{id}", who: members(tenants.MembersManage), path: "/console/settings/members/{new-member}", body: "role=billing", want: 303},
	{route: "GET /console/settings/members/{id}/remove", who: members(tenants.MembersManage), path: "/console/settings/members/{member}/remove"},
	{route: "POST /console/settings/members/{id}/remove", who: members(tenants.MembersManage), path: "/console/settings/members/{new-member}/remove", want: 303},
	{route: "GET /console/settings/members/{id}/reset", who: members(tenants.MembersManage), path: "/console/settings/members/{member}/reset"},
	{route: "POST /console/settings/members/{id}/reset", who: members(tenants.MembersManage), path: "/console/settings/members/{new-member}/reset", want: 201},
	{route: "GET /console/settings/members/invitations", who: members(tenants.MembersInvite)},
	{route: "GET /console/settings/members/invitations/new", who: members(tenants.MembersInvite)},
	{route: "POST /console/settings/members/invitations", who: members(tenants.MembersInvite), body: "email={new-email}&role=viewer", want: 201},
	{route: "GET /console/settings/members/invitations/{id}/resend", who: members(tenants.MembersInvite), path: "/console/settings/members/invitations/{new-invitation}/resend"},
	{route: "POST /console/settings/members/invitations/{id}/resend", who: members(tenants.MembersInvite), path: "/console/settings/members/invitations/{new-invitation}/resend", want: 201},
	{route: "GET /console/settings/members/invitations/{id}/revoke", who: members(tenants.MembersInvite), path: "/console/settings/members/invitations/{new-invitation}/revoke"},
	{route: "POST /console/settings/members/invitations/{id}/revoke", who: members(tenants.MembersInvite), path: "/console/settings/members/invitations/{new-invitation}/revoke", want: 303},
	{route: "GET /console/settings/projects", who: members(tenants.ProjectsRead)},
	{route: "POST /console/settings/projects", who: members(tenants.ProjectsWrite), body: "name=P", want: 303},
	{route: "GET /console/settings/audit", who: members(tenants.AuditRead)},
	{route: "GET /console/settings/audit.csv", who: members(tenants.AuditRead)},
	{route: "GET /console/settings/projects/{id}", who: members(tenants.ProjectsWrite), path: "/console/settings/projects/{project}"},
	{route: "POST /console/settings/projects/{id}", who: members(tenants.ProjectsWrite), path: "/console/settings/projects/{project}", body: "name=P", want: 303},
	{route: "GET /console/settings/organization", who: members(tenants.OrganizationRead)},
	{route: "POST /console/settings/organization", who: members(tenants.OrganizationWrite), body: "name=Renamed", want: 303},
	{route: "GET /console/settings/deletions", who: members(tenants.DeletionsManage)},
	{route: "GET /console/settings/projects/{id}/delete", who: members(tenants.DeletionsManage), path: "/console/settings/projects/{project}/delete"},
	{route: "POST /console/settings/projects/{id}/delete", who: members(tenants.DeletionsManage), path: "/console/settings/projects/{project}/delete",
		body: "name=another", want: 422},
	{route: "POST /console/settings/projects/{id}/restore", who: members(tenants.DeletionsManage), path: "/console/settings/projects/{project}/restore", want: 404},
	{route: "GET /console/settings/organization/delete", who: members(tenants.DeletionsManage)},
	{route: "POST /console/settings/organization/delete", who: members(tenants.DeletionsManage), body: "name=another", want: 422},
	{route: "GET /console/settings/api-keys", who: members(tenants.APIKeysRead)},
	{route: "GET /console/settings/api-keys/new", who: members(tenants.APIKeysWrite)},
	{route: "POST /console/settings/api-keys", who: members(tenants.APIKeysWrite), body: "name=K&environment=dev&ends=never&project={project}", want: 201},
	{route: "GET /console/settings/api-keys/{id}", who: members(tenants.APIKeysRead), path: "/console/settings/api-keys/{key}"},
	{route: "GET /console/settings/api-keys/{id}/first-event", who: members(tenants.APIKeysRead), path: "/console/settings/api-keys/{new-key}/first-event", want: 202},
	{route: "GET /console/settings/api-keys/{id}/rotate", who: members(tenants.APIKeysWriteProd), path: "/console/settings/api-keys/{key}/rotate"},
	{route: "POST /console/settings/api-keys/{id}/rotate", who: members(tenants.APIKeysWriteProd), path: "/console/settings/api-keys/{new-key}/rotate", body: "overlap_seconds=0", want: 201},
	{route: "GET /console/settings/api-keys/{id}/edit", who: members(tenants.APIKeysWriteProd), path: "/console/settings/api-keys/{key}/edit"},
	{route: "POST /console/settings/api-keys/{id}/edit", who: members(tenants.APIKeysWriteProd), path: "/console/settings/api-keys/{new-key}/edit", body: "name=K&access=full", want: 303},
	{route: "GET /console/settings/api-keys/{id}/revoke", who: members(tenants.APIKeysWriteProd), path: "/console/settings/api-keys/{key}/revoke"},
	{route: "POST /console/settings/api-keys/{id}/revoke", who: members(tenants.APIKeysWriteProd), path: "/console/settings/api-keys/{new-key}/revoke", want: 303},
	{route: "GET /console/settings/service-tokens", who: members(tenants.ServiceTokensRead)},
	{route: "GET /console/settings/service-tokens/new", who: members(tenants.ServiceTokensWrite)},
	{route: "POST /console/settings/service-tokens", who: members(tenants.ServiceTokensWrite), body: "name=T&scopes=billing:read", want: 201},
	{route: "POST /console/settings/service-tokens", who: members(tenants.OwnersManage), body: "name=T&scopes=tenants:admin", want: 201},
	{route: "GET /console/settings/service-tokens/{id}/revoke", who: members(tenants.ServiceTokensWrite), path: "/console/settings/service-tokens/{new-token}/revoke"},
	{route: "POST /console/settings/service-tokens/{id}/revoke", who: members(tenants.ServiceTokensWrite), path: "/console/settings/service-tokens/{new-token}/revoke", want: 303},
	{route: "GET /console/settings/webhooks", who: members(tenants.WebhooksManage)},
	{route: "GET /console/settings/webhooks/new", who: members(tenants.WebhooksManage)},
	{route: "POST /console/settings/webhooks", who: members(tenants.WebhooksManage), body: "url=https://hooks.invalid&events=quota.exhausted", want: 201},
	{route: "GET /console/settings/webhooks/{id}", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}"},
	{route: "GET /console/settings/webhooks/{id}/edit", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}/edit"},
	{route: "POST /console/settings/webhooks/{id}/edit", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{new-webhook}/edit", body: "url=https://hooks.invalid&events=quota.exhausted&format=slack&state=off", want: 303},
	{route: "GET /console/settings/webhooks/{id}/rotate", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}/rotate"},
	{route: "POST /console/settings/webhooks/{id}/rotate", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{new-webhook}/rotate"},
	{route: "GET /console/settings/webhooks/{id}/delete", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}/delete"},
	{route: "POST /console/settings/webhooks/{id}/delete", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{new-webhook}/delete", want: 303},
	{route: "POST /console/settings/webhooks/{id}/test", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}/test", want: 303},
	{route: "POST /console/settings/webhooks/{id}/replay", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}/replay", want: 303},
	{route: "POST /console/settings/webhooks/{id}/deliveries/{delivery}/replay", who: members(tenants.WebhooksManage), path: "/console/settings/webhooks/{webhook}/deliveries/{new-delivery}/replay", want: 303},
	{route: "GET /console/settings/security", who: members(tenants.SecurityWrite)},
	{route: "POST /console/settings/security", who: members(tenants.SecurityWrite), body: "leaked_keys=revoke&plain_http_keys=flag", want: 303},
}

// unreached are the routes of a module that the gateway does not
// forward: each module's own description.
var unreached = []string{
	"GET /v1/ingest/openapi.json", "GET /v1/ledger/openapi.json", "GET /v1/grouping/openapi.json", "GET /v1/tenants/openapi.json",
}

// ownOfGateway are the routes that the gateway itself answers, for all modules.
var ownOfGateway = []string{
	"GET /", "GET /docs", "GET /healthz", "GET /readyz", "GET /v1/openapi.json", "GET /v1/openapi-3.0.json", "GET /v1/error-groups/{group}/occurrences",
}

// A gate decides who has access, and how others are refused.
type gate struct {
	line string // how the policy is written
	// passes returns the tenant for which a caller with access acts,
	// nil for the installation's; otherwise how it is refused.
	passes func(p principal) (as *tenant, refusal int)
	loose  bool // signed-in members may be redirected
}

// The gates.
var (
	everybody = gate{line: "everybody", passes: func(principal) (*tenant, int) { return nil, 0 }}
	visitors  = gate{line: "visitors", loose: true, passes: func(principal) (*tenant, int) { return nil, 0 }}
	keys      = gate{line: "keys", passes: func(p principal) (*tenant, int) {
		if p.key == nil {
			return nil, http.StatusUnauthorized
		}
		return p.key, 0
	}}
	readers = gate{line: "readers", passes: func(p principal) (*tenant, int) {
		as, refusal := keys.passes(p)
		if refusal == 0 && p.access == "write" {
			refusal = http.StatusForbidden
		}
		return as, refusal
	}}
	wideReaders = gate{line: "wideReaders", passes: func(p principal) (*tenant, int) {
		as, refusal := readers.passes(p)
		if refusal == 0 && p.access == "project" { // as if there were nothing but its own project
			refusal = http.StatusNotFound
		}
		return as, refusal
	}}
	deciders = gate{line: "deciders", passes: func(p principal) (*tenant, int) {
		as, refusal := readers.passes(p)
		if refusal == 0 && p.access == "project" {
			refusal = http.StatusForbidden
		}
		return as, refusal
	}}
	billingOperators = gate{line: "billingOperators", passes: func(p principal) (*tenant, int) {
		as, refusal := tokens("billing:read").passes(p)
		if refusal == 0 && as != nil {
			refusal = http.StatusForbidden
		}
		return as, refusal
	}}
	operators = gate{line: "operators", passes: func(p principal) (*tenant, int) {
		as, refusal := tokens("tenants:admin").passes(p)
		if refusal == 0 && as != nil {
			refusal = http.StatusForbidden
		}
		return as, refusal
	}}
)

// tokens admits service tokens with one of the scopes.
func tokens(scopes ...string) gate {
	return gate{line: `tokens("` + strings.Join(scopes, `", "`) + `")`, passes: func(p principal) (*tenant, int) {
		switch {
		case p.token == nil:
			return nil, http.StatusUnauthorized
		case !slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(p.token.scopes, scope) }):
			return nil, http.StatusForbidden
		}
		return p.token.of, 0
	}}
}

// members admits members whose role has a permission; "": all. Others
// are redirected to the sign-in.
func members(needs tenants.Permission) gate {
	return gate{line: `members("` + string(needs) + `")`, passes: func(p principal) (*tenant, int) {
		switch {
		case p.session == nil:
			return nil, http.StatusSeeOther
		case needs != "" && !tenants.Role(p.session.role).May(needs):
			return nil, http.StatusForbidden
		}
		return p.session.of, 0
	}}
}

// open are the routes without authentication that always
// answer everybody alike.
var open = []string{"GET /", "GET /docs", "GET /healthz", "GET /readyz", "GET /v1/openapi.json", "GET /v1/openapi-3.0.json", "GET /console/assets/{version}/{name}"}

// Every authenticated route limits its callers and sends the limit,
// also to callers without the scope or permission.
func testEveryAuthenticatedRouteIsLimited(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	key := principal{name: "an API key", header: asKey(a.key), key: a}
	write := w.keyHolder(t, a, "write")
	strong, weak := w.tokenHolder(t, a, "a token with all scopes", scopes...), w.tokenHolder(t, a, "a token with another scope", "x:y")
	owner, billing := w.memberOf(t, a, "owner"), w.memberOf(t, a, "billing")
	limited := 0
	for _, p := range policies {
		callers := []principal{owner, billing}
		switch {
		case p.who.loose || p.who.line == everybody.line:
			continue
		case slices.Contains([]string{keys.line, readers.line, wideReaders.line, deciders.line}, p.who.line):
			callers = []principal{key, write}
		case !strings.Contains(p.route, " /console"):
			callers = []principal{strong, weak}
		}
		limited++
		for _, caller := range callers {
			if p.ends && caller.session != nil {
				caller = w.memberOf(t, a, caller.session.role)
			}
			got := w.send(t, caller.sends(p.request(t, a)))
			for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Scope", "RateLimit-Policy", "RateLimit"} {
				if got.header.Get(name) == "" {
					t.Errorf("%s as %s: %d without %s", p.route, caller.name, got.status, name)
				}
			}
		}
	}
	t.Logf("%d policies of authenticated routes", limited)
}

// Until a module has the credentials it answers on every route that it
// is starting: it calls no valid key invalid, and sends no signed-in
// member to the sign-in. Once it runs, it limits reads.
func TestStartingUntilCredentialsAreKnown(t *testing.T) {
	const perMinute = 30
	w := builtWorld(t, kafkatest.Brokers(t), postgrestest.URL(t), func(set *allinone.Modules) {
		set.Ingest.Limits.ReadsPerMinute, set.Ledger.Limits.ReadsPerMinute, set.Grouping.Limits.ReadsPerMinute = perMinute, perMinute, perMinute
	})
	digits := strings.Repeat("a", 48)
	callers := []principal{
		{name: "nobody"}, {name: "an API key", header: asKey("weir_" + digits)}, {name: "the operator", header: asToken(operatorToken)},
		{name: "a session", cookies: asSession("weirses_" + digits)},
	}
	for _, p := range policies {
		if slices.Contains(open, p.route) {
			continue
		}
		method, path, _ := strings.Cut(p.route, " ")
		path = regexp.MustCompile(`\{[a-z-]+\}|\*`).ReplaceAllString(path, "x")
		for _, caller := range callers {
			got := w.send(t, caller.sends(request{method: method, path: path, body: p.body}))
			status, code := http.StatusInternalServerError, got.get("code")
			if path == bulkPath && method != http.MethodOptions { // so does a client of Elasticsearch
				status = http.StatusServiceUnavailable
			}
			if path == otlpPath && method == http.MethodPost { // a Collector sends again what was answered so
				status = http.StatusServiceUnavailable
				code, _, _ = strings.Cut(got.get("message"), ":")
			}
			if got.status != status || got.header.Get("Retry-After") == "" || got.header.Get("Location") != "" {
				t.Errorf("%s as %s: %d %v %s", p.route, caller.name, got.status, got.header, got.brief())
			}
			if asked := method == http.MethodGet && strings.HasPrefix(path, "/console"); asked != (got.header.Get("Refresh") != "") {
				t.Errorf("%s as %s: Refresh is %q", p.route, caller.name, got.header.Get("Refresh"))
			}
			if console := strings.HasPrefix(path, "/console"); !console && code != "unavailable" || console && !strings.Contains(got.text, "starting") {
				t.Errorf("%s as %s: %s", p.route, caller.name, got.brief())
			}
			if inside := regexp.MustCompile(`weir\.[a-z]+\.v1|127\.0\.0\.1`).FindString(got.text); inside != "" {
				t.Errorf("%s as %s shows %s: %s", p.route, caller.name, inside, got.brief())
			}
		}
	}
	w.start(t)
	w.readsAreLimited(t, perMinute)
}

// readsAreLimited holds that every module refuses callers that read or
// administer without pause, with a time to wait, for every kind of credential;
// other callers are served.
func (w *world) readsAreLimited(t *testing.T, perMinute int) {
	t.Helper()
	a, b := w.tenant(t, "Acorn"), w.tenant(t, "Birch")
	reads := func(of *tenant, as principal) map[string]principal {
		key, token := principal{header: asKey(of.key)}, w.tokenHolder(t, of, "a token", "billing:read")
		return map[string]principal{
			"/v1/logs": key, "/v1/error-groups/" + of.things["group"]: key, "/v1/organizations/" + of.things["organization"] + "/balance": token,
			"/console/logs": as, "/console/errors": as, "/console/usage": as,
		}
	}
	quiet := reads(b, w.memberOf(t, b, "owner"))
	for path, caller := range reads(a, w.memberOf(t, a, "owner")) {
		got := answer{}
		for range 20 * perMinute { // a slow machine wins reads back meanwhile
			if got = w.send(t, caller.sends(request{method: "GET", path: path})); got.status == http.StatusTooManyRequests {
				break
			}
		}
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" || got.header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("GET %s without pause: %d %v", path, got.status, got.header)
		}
		if !strings.HasPrefix(path, "/console") && got.get("code") != "rate_limited" {
			t.Errorf("GET %s without pause: %s", path, got.text)
		}
	}
	for path, caller := range quiet {
		if got := w.send(t, caller.sends(request{method: "GET", path: path})); got.status != http.StatusOK {
			t.Errorf("GET %s of the other organization: %d %s", path, got.status, got.brief())
		}
	}
}
