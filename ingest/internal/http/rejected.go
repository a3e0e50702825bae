package http

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// noteRefusal records a request that was refused whole for what it is. What
// was wrong with its entries is recorded with them.
func (q *request) noteRefusal(err error) {
	problem, is := errors.AsType[*httpapi.Problem](err)
	if !is || problem.Status != http.StatusBadRequest || problem.Code == string(ingest.CodeInvalidEntries) {
		return
	}
	if errors.Is(err, errNoFault) || !q.caller.Known() || q.caller.Ended {
		return
	}
	sample := q.unread
	sample.Detail = problem.Detail
	if len(problem.Faults) > 0 {
		fault := &problem.Faults[0]
		sample.Pointer, sample.Detail, sample.Fix = fault.Pointer, fault.Detail, fault.Fix
	}
	q.in.Rejected.Note(q.caller.Principal, ingest.Rejection{Code: ingest.Code(problem.Code), Entries: 1, Samples: []ingest.Sample{sample}})
}

// Rejected serves what was rejected of a project.
type Rejected struct{ Service *rejected.Service }

// maxRejected is how many items a page has at most: each has samples.
const maxRejected = 100

func rejecting(r *Rejected) openapi.Operation {
	return openapi.Operation{
		Route: "GET /v1/projects/{project}/rejected-entries", Handle: r.list, ID: "listRejectedEntries",
		Summary: "What was rejected in the last 24 hours, by API key and code, with samples",
		Description: "It is there some seconds after the answer that said so, and for 24 hours. Requests that were refused for their rate, " +
			"the quota or their key are not among these: the usage of the organization counts them.",
		Query: rejectedQuery{}, Answer: openapi.Answer{Type: httpapi.List[rejectedBody]{}, Description: "A page of at most 100, by key and code"},
		Problems: map[int]string{http.StatusNotFound: "There is no such project in the organization"},
	}
}

type rejectedQuery struct {
	Key  string `query:"key" description:"Only those of this API key, by its id"`
	Code string `query:"code" description:"Only those of this code"`
	httpapi.Page
}

type rejectedBody struct {
	Key     string               `json:"key" description:"The id of the API key"`
	Code    string               `json:"code" description:"What errors[] of the answer, or the answer itself, had as its code"`
	Entries int64                `json:"entries" description:"Entries that were rejected for it, an entry with several faults for each; or requests, if they were refused whole"`
	LastAt  time.Time            `json:"last_at"`
	Samples []rejectedSampleBody `json:"samples" description:"Up to five of the newest, the newest first"`
}

type rejectedSampleBody struct {
	At      time.Time `json:"at"`
	Pointer string    `json:"pointer" description:"Where the fault is, from the root of the body that had the entry, as in the answer"`
	Detail  string    `json:"detail"`
	Fix     string    `json:"fix" description:"What to do; empty where detail says it"`
	Text    string    `json:"text" description:"The entry without white space, or the body around the fault, up to 1,024 bytes, without credentials. Empty where it is not known, as of a body that was not read"`
	Cut     bool      `json:"cut" description:"There is more than text"`
}

func (r *Rejected) list(w http.ResponseWriter, req *http.Request) error {
	page, err := httpapi.ParsePage(req)
	if err != nil {
		return err
	}
	query, limit := req.URL.Query(), min(page.Limit, maxRejected)
	filter := postgres.RejectedFilter{Project: chi.URLParam(req, "project"), Key: query.Get("key"), Code: query.Get("code"), Limit: limit + 1}
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(req, page.Cursor, &filter.After); err != nil {
			return err
		}
	}
	found, err := r.Service.List(req.Context(), identity.FromContext(req.Context()), filter)
	if err != nil {
		return NotFound(err, ingest.Search{Project: filter.Project})
	}
	httpapi.WriteList(w, req, found, limit, showRejected, func(last ingest.Rejected) postgres.KeyCode {
		return postgres.KeyCode{Key: last.Key, Code: string(last.Code)}
	})
	return nil
}

func showRejected(r ingest.Rejected) rejectedBody {
	body := rejectedBody{Key: r.Key, Code: string(r.Code), Entries: r.Entries, LastAt: r.LastAt.UTC(), Samples: []rejectedSampleBody{}}
	for _, s := range r.Samples {
		body.Samples = append(body.Samples, rejectedSampleBody{s.At.UTC(), s.Pointer, s.Detail, s.Fix, s.Text, s.Cut})
	}
	return body
}
