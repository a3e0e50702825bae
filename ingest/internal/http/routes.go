package http

import (
	"bytes"
	_ "embed"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// What reads its body in pieces is described here: no type of ours has the
// shape of that.
//
//go:embed postlogs.json
var postLogs []byte

//go:embed postotlp.json
var postOTLP []byte

//go:embed postloki.json
var postLoki []byte

//go:embed postbulk.json
var postBulk []byte

// Mount adds the routes of ingest.
func Mount(router chi.Router, guard *identity.Guard, intake *Intake, logs *Logs, tails *Tails, saved *Saved, rejected *Rejected, rules *Rules) {
	httpapi.Describe(router, module.Name, OpenAPI())
	MountIntake(router, intake)
	reading := router.With(guard.RequireAPIKey())
	for _, operation := range slices.Concat(searching(logs), []openapi.Operation{tailing(tails), rejecting(rejected)}, saving(saved), ruling(rules)) {
		operation.Mount(reading)
	}
}

// MountIntake adds only the routes that take entries.
func MountIntake(router chi.Router, intake *Intake) {
	for _, operation := range sending(intake) {
		operation.Mount(router)
		_, path, _ := strings.Cut(operation.Route, " ")
		router.Method(http.MethodOptions, path, httpapi.Handle(intake.preflight))
	}
}

var module = openapi.Module{
	Name: "ingest", Tag: "logs", Description: "Sending log entries and finding them again", Credential: openapi.APIKey, Problem: problemBody{},
	Problems: map[int]string{
		http.StatusBadRequest:   "A parameter is invalid",
		http.StatusUnauthorized: "The API key is missing, invalid, revoked or expired",
		http.StatusForbidden:    "forbidden: the key may only send logs (access write)",
		http.StatusNotFound:     "not_found: there is no such saved search or project that the key may read, or it has no alert",
		http.StatusTooManyRequests: "rate_limited: the organization, the project or the credential asks too often. " +
			"overloaded: too many searches or tails of the organization are under way, or it does not read its answers. Wait for Retry-After",
		http.StatusInternalServerError: "The service is unavailable",
	},
}

// problemBody is an error answer of ingest.
type problemBody struct {
	httpapi.ProblemBody
	Rejected  *int       `json:"rejected,omitempty" description:"How many entries are invalid"`
	Processed *int       `json:"processed,omitempty" description:"0: nothing was stored"`
	Offset    *int64     `json:"offset,omitempty" description:"The byte of the body at which it is no JSON"`
	Limit     int64      `json:"limit,omitempty" description:"How many bytes a body may have"`
	ResetsAt  string     `json:"resets_at,omitempty" format:"date-time" description:"Of quota_exceeded: when the quota covers requests again"`
	Quota     *quotaBody `json:"quota,omitempty"`
	Version   int64      `json:"version,omitempty" description:"Of version_conflict: that of the rules"`
	Budget    budgetBody `json:"budget,omitzero" description:"Of quota_exceeded: the budget of a project or a key that does not cover the request; absent where it is the quota"`
}

// OpenAPI describes the routes.
func OpenAPI() []byte {
	return module.Document(slices.Concat(searching(new(Logs)), sending(new(Intake)), []openapi.Operation{tailing(new(Tails)), rejecting(new(Rejected))},
		saving(new(Saved)), ruling(new(Rules))))
}

// sending checks API keys by itself.
func sending(intake *Intake) []openapi.Operation {
	return []openapi.Operation{
		{Route: "POST /v1/logs", Handle: intake.Metrics.watch(intake.Post), Written: postLogs},
		{Route: "POST /v1/otlp/v1/logs", Handle: answersOTLP(intake.Metrics.watch(intake.PostOTLP)), Written: postOTLP},
		{Route: "POST /v1/loki/api/v1/push", Handle: intake.Metrics.watch(intake.PostLoki), Written: postLoki},
		{Route: "POST /v1/elastic/_bulk", Handle: intake.PostBulk, Written: postBulk},
		{Route: "PUT /v1/elastic/_bulk", Handle: intake.PostBulk, Written: bytes.Replace(postBulk, []byte("bulkElasticDocuments"), []byte("putElasticDocuments"), 1)},
	}
}

func searching(logs *Logs) []openapi.Operation {
	noProject := map[int]string{http.StatusNotFound: "There is no such project in the organization"}
	return []openapi.Operation{
		{
			Route: "GET /v1/logs", Handle: logs.List, ID: "searchLogs",
			Summary: "Find entries of the organization",
			Query:   logsQuery{},
			Answer: openapi.Answer{
				Type: pageBody{}, Texts: []openapi.Text{
					{Media: httpapi.TypeLines, Description: "An entry on each line"},
					{Media: httpapi.TypeCSV, Description: "A head and a row for each entry: timestamp, received_at, level, environment, project, message, entry. " +
						"A message or an environment that a spreadsheet could take for a formula has an apostrophe before it"},
				},
				Description: "A page. It ends at 8 MiB of entries, whatever its limit: it can hold fewer items than asked for and still have a next one. " +
					"Where lines or CSV are preferred: all entries that match, each alone on its line, to the end, or to the limit where one is given. " +
					"The trailer Weir-Incomplete says `true` where the lines had to end before that, and Weir-Next-Cursor where they go on; " +
					"an answer without these trailers was cut",
			},
			Problems: noProject,
		},
		{
			Route: "GET /v1/logs/stats", Handle: logs.Stats, ID: "countLogs",
			Summary: "Count entries of the organization: in all, over time, and by the values of fields",
			Query:   statsQuery{},
			Answer: openapi.Answer{Type: statsBody{}, Texts: []openapi.Text{{
				Media: httpapi.TypeCSV, Description: "A head and a row for each value and bucket: at, field, value, entries, count, sum, min, max, p50, p90, p95, p99; " +
					"numbers are in rows without at. The headers Weir-Incomplete and Weir-Exact-After say what the fields of JSON do",
			}}},
			Problems: noProject,
		},
		{
			Route: "GET /v1/logs/patterns", Handle: logs.Patterns, ID: "findLogPatterns",
			Summary: "Find the patterns of messages, and which are new since a time",
			Query:   patternsQuery{},
			Answer: openapi.Answer{Type: patternsBody{}, Texts: []openapi.Text{{
				Media: httpapi.TypeCSV, Description: "A head and a row for each pattern: pattern, entries, share, debug, info, warn, error, fatal, first_seen, " +
					"last_seen, example, query. The header Weir-Incomplete says whether not all was read",
			}}},
			Problems: noProject,
		},
	}
}

func tailing(tails *Tails) openapi.Operation {
	return openapi.Operation{
		Route: "GET /v1/logs/tail", Handle: tails.Show, ID: "tailLogs",
		Summary: "Watch entries of the organization as they are accepted",
		Query:   filter{},
		Answer: openapi.Answer{
			Texts: []openapi.Text{{Media: httpapi.TypeEvents, Description: "Server-sent events: entry, skipped and end"}},
			Description: "Events, in no certain order of time. `entry` has an item as of GET /v1/logs. " +
				"`skipped` has how many `entries` were not shown, and the `reason`: `slow`, as the client reads too slowly, " +
				"or `share`, as its organization had its share and they were not compared. `end` is the last, with its `reason`: `time_is_up`, " +
				"`server_stops`, `credential_ended`, `project_deleted`, or `overloaded`, as another organization needs the place. " +
				"A comment comes every 15 seconds",
		},
		Problems: map[int]string{http.StatusNotFound: "There is no such project in the organization"},
	}
}

// Metrics count what the intake accepts and refuses. A nil *Metrics
// counts nothing.
type Metrics struct {
	entries, bytes, rejected prometheus.Counter
	faults                   map[ingest.Code]prometheus.Counter // bounded by the codes
	refused                  *prometheus.CounterVec
	wasted                   prometheus.Counter
}

// NewMetrics registers the instruments.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	metrics := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return metrics.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	faults := metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_faults_total", Help: "What was wrong with rejected entries, as far as the answers list it.",
	}, []string{"code"})
	m := &Metrics{
		entries:  counter("weir_ingest_accepted_entries_total", "Entries that were acknowledged."),
		bytes:    counter("weir_ingest_accepted_bytes_total", "Bytes of the acknowledged entries, as they are charged."),
		rejected: counter("weir_ingest_rejected_entries_total", "Entries that are invalid."),
		wasted:   counter("weir_ingest_wasted_bytes_total", "Bytes of bodies, decompressed, of which nothing was accepted by a fault of their sender."),
		faults:   map[ingest.Code]prometheus.Counter{},
		refused: metrics.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_ingest_refused_requests_total", Help: "Requests of which nothing was accepted, by the code that they were answered with.",
		}, []string{"code"}),
	}
	for _, code := range ingest.EntryCodes() {
		m.faults[code] = faults.WithLabelValues(string(code))
	}
	return m
}

// waste counts wasted bytes.
func (m *Metrics) waste(bytes int64) {
	if m != nil {
		m.wasted.Add(float64(bytes))
	}
}

// accepted counts acknowledged entries.
func (m *Metrics) accepted(batch *ingest.Batch) {
	if m != nil {
		m.entries.Add(float64(batch.Valid()))
		m.bytes.Add(float64(batch.Bytes))
	}
}

// judged counts the faults of entries.
func (m *Metrics) judged(batch *ingest.Batch) {
	if m == nil || batch.Rejected == 0 {
		return
	}
	m.rejected.Add(float64(batch.Rejected))
	for i := range batch.Faults {
		if counter := m.faults[batch.Faults[i].Code]; counter != nil {
			counter.Inc()
		}
	}
}

// watch counts the requests that handle refuses.
func (m *Metrics) watch(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	if m == nil {
		return handle
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if err != nil {
			code := httpapi.CodeInternal
			if problem := (*httpapi.Problem)(nil); errors.As(err, &problem) {
				code = problem.Code
			}
			m.refused.WithLabelValues(code).Inc()
		}
		return err
	}
}
