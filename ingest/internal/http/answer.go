package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
)

// answer writes a 200 with what was accepted, by hand, as every
// request takes this path.
func answer(w http.ResponseWriter, batch *ingest.Batch, bytes int64, quota ingest.QuotaStatus) {
	body := make([]byte, 0, 256)
	body = strconv.AppendQuote(append(body, `{"message":`...), summary(batch))
	body = strconv.AppendInt(append(body, `,"processed":`...), int64(len(batch.Accepted)), 10)
	body = strconv.AppendInt(append(body, `,"bytes_used":`...), bytes, 10)
	body = strconv.AppendInt(append(body, `,"rejected":`...), int64(batch.Rejected), 10)
	body = strconv.AppendInt(append(body, `,"quota":{"limit":`...), quota.Limit, 10)
	body = strconv.AppendInt(append(body, `,"used":`...), quota.Used, 10)
	body = strconv.AppendInt(append(body, `,"remaining":`...), quota.Remaining, 10)
	body = quota.ResetsAt.UTC().AppendFormat(append(body, `,"resets_at":"`...), time.RFC3339)
	body = append(body, `"}`...)
	if len(batch.Faults) > 0 {
		body = appendFaults(body, batch)
	}
	body = append(body, '}')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

func appendFaults(body []byte, batch *ingest.Batch) []byte {
	faults, err := json.Marshal(batch.Faults)
	if err != nil {
		panic("BUG: cannot encode faults: " + err.Error())
	}
	body = append(append(body, `,"errors":`...), faults...)
	if batch.FaultsTruncated {
		body = append(body, `,"errors_truncated":true`...)
	}
	return body
}

// summary describes what was accepted.
func summary(batch *ingest.Batch) string {
	accepted := strconv.Itoa(len(batch.Accepted))
	switch {
	case batch.Rejected > 0:
		return "Accepted " + accepted + " of " + strconv.Itoa(batch.Entries) + " entries; " + strconv.Itoa(batch.Rejected) + " rejected"
	case batch.Entries == 1:
		return "Accepted 1 entry"
	}
	return "Accepted " + accepted + " entries"
}

// invalidBody is the answer to a body without any acceptable entry.
func invalidBody(err error) error {
	var invalid *ingest.BodyError
	if !errors.As(err, &invalid) {
		return err
	}
	problem := httpapi.NewProblem(http.StatusBadRequest, string(invalid.Code), invalid.Detail)
	problem.Faults = []httpapi.Fault{{Pointer: invalid.Pointer, Code: string(invalid.Code), Detail: invalid.Detail, Fix: invalid.Fix}}
	return problem.With("offset", invalid.Offset)
}

// invalidEntries is the answer if no entry can be accepted, or not all
// and handling is strict.
func invalidEntries(batch *ingest.Batch, strict bool) error {
	detail := fmt.Sprintf("None of the %d entries is valid. Nothing was stored.", batch.Entries)
	switch {
	case strict && batch.Rejected < batch.Entries:
		detail = fmt.Sprintf("%d of the %d entries are invalid, and handling is strict. Nothing was stored.", batch.Rejected, batch.Entries)
	case batch.Entries == 1:
		detail = "The entry is invalid. Nothing was stored."
	}
	problem := httpapi.NewProblem(http.StatusBadRequest, string(ingest.CodeInvalidEntries), detail)
	for i := range batch.Faults {
		f := &batch.Faults[i]
		index := f.Index
		problem.Faults = append(problem.Faults, httpapi.Fault{Index: &index, Pointer: f.Pointer, Code: string(f.Code), Detail: f.Detail, Fix: f.Fix})
	}
	problem.With("rejected", batch.Rejected).With("processed", 0)
	if batch.FaultsTruncated {
		problem.With("errors_truncated", true)
	}
	return problem
}
