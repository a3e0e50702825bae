package http

import (
	"maps"
	"net/http"
	"strings"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/shippers"
	"github.com/weirlog/weir/shared/httpapi"
)

// An elasticProtocol is the bulk API of Elasticsearch.
type elasticProtocol struct {
	items []shippers.Item
}

// elasticTypes are media types of a bulk request.
var elasticTypes = []string{"application/x-ndjson", "application/json", "application/vnd.elasticsearch+x-ndjson", "application/vnd.elasticsearch+json"}

// PostBulk accepts documents, by the checks of Post and in their order. If
// none can be accepted, its answer says so of each: to many clients a
// refused request is one to send again.
func (in *Intake) PostBulk(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("X-Elastic-Product", "Elasticsearch") // clients read no answer without it
	bulk := new(elasticProtocol)
	err := in.Metrics.watch(func(w http.ResponseWriter, r *http.Request) error {
		return in.take(&request{in: in, w: w, r: r, translated: &translated{protocol: bulk}})
	})(w, r)
	if err == nil {
		return nil
	}
	problem := httpapi.AsProblem(r, err)
	if problem.Code != string(ingest.CodeInvalidEntries) {
		writeElasticError(w, r, problem)
		return nil
	}
	faults := make(map[int]bulkFault, len(problem.Faults))
	for _, f := range problem.Faults {
		faults[*f.Index] = bulkFault{Type: f.Code, Reason: f.Detail + " " + f.Fix}
	}
	bulk.write(w, faults)
	return nil
}

// An elasticError is an answer that clients of Elasticsearch read: they
// know no application/problem+json.
type elasticError struct {
	Error     bulkFault `json:"error"`
	Status    int       `json:"status"`
	Code      string    `json:"code"`
	RequestID string    `json:"request_id"`
}

func writeElasticError(w http.ResponseWriter, r *http.Request, problem *httpapi.Problem) {
	maps.Copy(w.Header(), problem.Header)
	status := problem.Status
	if status == http.StatusInternalServerError { // after which clients don't send again
		status = http.StatusServiceUnavailable
	}
	httpapi.WriteJSON(w, status, elasticError{
		Error: bulkFault{Type: problem.Code, Reason: problem.Detail}, Status: status, Code: problem.Code, RequestID: httpapi.RequestID(r.Context()),
	})
}

func (*elasticProtocol) apiKey(r *http.Request) (string, error) { return shipperKey(r) }

func (*elasticProtocol) readHeaders(header http.Header) (options requestOptions, err error) {
	if _, err = mediaOf(header, elasticTypes...); err != nil {
		return options, err
	}
	err = options.readCommon(header)
	return options, err
}

func (*elasticProtocol) workingMemory(body []byte) int64 {
	return shippers.WorkingMemory(int64(len(body)))
}

func (e *elasticProtocol) toOTLP(body []byte) (request []byte, err error) {
	request, e.items, err = shippers.Bulk(body, maxRecords)
	return request, err
}

func (*elasticProtocol) invalid(err error) error {
	return httpapi.NewProblem(http.StatusBadRequest, "invalid_bulk",
		"The body can't be read as a bulk request: "+strings.TrimSuffix(err.Error(), ".")+". Send a line with an action, then one with the document.")
}

// A bulkFault is why a document was not accepted.
type bulkFault struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// A bulkResult is what became of a document.
type bulkResult struct {
	Index  string     `json:"_index"`
	ID     string     `json:"_id,omitempty"`
	Status int        `json:"status"`
	Error  *bulkFault `json:"error,omitempty"`
}

type bulkBody struct {
	Took   int                     `json:"took"`
	Errors bool                    `json:"errors"`
	Items  []map[string]bulkResult `json:"items"`
}

func (e *elasticProtocol) leftOut() ingest.Rejection {
	documents := ingest.Rejection{Code: codeInvalidDocument}
	for i := range e.items {
		item := &e.items[i]
		if item.Fault == "" {
			continue
		}
		if documents.Entries++; item.Sent != nil {
			documents.Samples = append(documents.Samples, ingest.Sample{Detail: item.Fault, Text: item.Sent, Cut: item.Cut})
		}
	}
	return documents
}

// codeInvalidDocument is of a document that is no entry.
const codeInvalidDocument = "invalid_document"

func (e *elasticProtocol) answer(w http.ResponseWriter, batch *ingest.Batch) {
	faults := map[int]bulkFault{}
	if batch != nil {
		for i := range batch.Faults {
			f := &batch.Faults[i]
			faults[f.Index] = bulkFault{Type: string(f.Code), Reason: f.Detail + " " + f.Fix}
		}
	}
	e.write(w, faults)
}

// write answers what became of each document; faults are by record.
func (e *elasticProtocol) write(w http.ResponseWriter, faults map[int]bulkFault) {
	body := bulkBody{Items: make([]map[string]bulkResult, 0, len(e.items))}
	for _, item := range e.items {
		result := bulkResult{Index: item.Index, ID: item.ID, Status: http.StatusCreated}
		fault, rejected := faults[item.Record]
		if item.Fault != "" {
			fault, rejected = bulkFault{Type: codeInvalidDocument, Reason: item.Fault}, true
		}
		if rejected {
			result.Status, result.Error, body.Errors = http.StatusBadRequest, &fault, true
		}
		body.Items = append(body.Items, map[string]bulkResult{item.Action: result})
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
}
