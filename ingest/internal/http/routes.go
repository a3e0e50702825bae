package http

import (
	_ "embed"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// postLogs describes POST /v1/logs, which reads its body in pieces: no
// type of ours has the shape of that.
//
//go:embed postlogs.json
var postLogs []byte

// Mount adds the routes of ingest.
func Mount(router chi.Router, guard *identity.Guard, intake *Intake, logs *Logs) {
	httpapi.Describe(router, module.Name, OpenAPI())
	sending(intake).Mount(router)
	searching(logs).Mount(router.With(guard.RequireAPIKey()))
}

var module = openapi.Module{
	Name: "ingest", Tag: "logs", Description: "Sending log entries and finding them again", Credential: openapi.APIKey, Problem: problemBody{},
	Problems: map[int]string{
		http.StatusBadRequest:   "A parameter is invalid",
		http.StatusUnauthorized: "The API key is missing, invalid, revoked or expired",
		http.StatusForbidden:    "forbidden: the key may only send logs (access write)",
		http.StatusTooManyRequests: "rate_limited: the organization, the project or the credential asks too often. " +
			"overloaded: too many searches of the organization wait, or it does not read its answers. Wait for Retry-After",
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
	Budget    budgetBody `json:"budget,omitzero" description:"Of quota_exceeded: the budget of a project or a key that does not cover the request; absent where it is the quota"`
}

// OpenAPI describes the routes.
func OpenAPI() []byte {
	return module.Document([]openapi.Operation{sending(new(Intake)), searching(new(Logs))})
}

// sending checks API keys by itself.
func sending(intake *Intake) openapi.Operation {
	return openapi.Operation{Route: "POST /v1/logs", Handle: intake.Metrics.watch(intake.Post), Written: postLogs}
}

func searching(logs *Logs) openapi.Operation {
	return openapi.Operation{
		Route: "GET /v1/logs", Handle: logs.List, ID: "searchLogs",
		Summary: "Find entries of the organization",
		Query:   logsQuery{},
		Answer: openapi.Answer{
			Type: pageBody{}, Texts: []openapi.Text{{Media: httpapi.TypeLines, Description: "An entry on each line"}},
			Description: "A page. It ends at 8 MiB of entries, whatever its limit: it can hold fewer items than asked for and still have a next one. " +
				"Where lines are preferred: all entries that match, each alone on its line, to the end, or to the limit where one is given. " +
				"The trailer Weir-Incomplete says `true` where the lines had to end before that, and Weir-Next-Cursor where they go on; " +
				"an answer without these trailers was cut",
		},
		Problems: map[int]string{http.StatusNotFound: "There is no such project in the organization"},
	}
}
