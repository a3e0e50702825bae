package weir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A verdict is what an answer means for a batch.
type verdict int

const (
	accepted  verdict = iota // the valid entries
	invalid                  // nothing; the entries at fault are named, or it is the batch
	denied                   // nothing, and it will stay so
	deferred                 // nothing now
	overdrawn                // nothing before the quota is larger
)

// An answer is what Weir says, or the network.
type answer struct {
	verdict verdict
	wait    time.Duration // the least before another attempt
	token   time.Duration // before another request of any batch
	problem problem
	err     error // if not accepted
}

// A problem has the members of an answer's body that matter here.
type problem struct {
	Code      string
	Detail    string
	Processed *int
	Rejected  int
	Errors    []struct {
		Index             *int // nil: the whole request is at fault
		Code, Detail, Fix string
	}
}

// maxAnswer is more than Weir answers.
const maxAnswer = 1 << 20

func readAnswer(response *http.Response, now time.Time) (a answer) {
	defer response.Body.Close()
	text, readErr := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	parseErr := json.Unmarshal(text, &a.problem)
	a.wait, a.token = retryAfter(response.Header, now), untilToken(response.Header, now)
	a.verdict = verdictOf(response.StatusCode, a.problem)
	if a.verdict == accepted && (readErr != nil || parseErr != nil || a.problem.Processed == nil) {
		a.verdict, a.err = deferred, errors.New("weir: the answer to a batch is cut off, or not of Weir: check WEIR_BASE_URL")
	}
	if a.verdict == overdrawn {
		a.wait = 0 // until the quota's period ends, but a grant may come before
	}
	if a.verdict != accepted && a.err == nil {
		a.err = fmt.Errorf("weir: Weir answers %d %s: %s", response.StatusCode, a.problem.Code, a.problem.Detail)
	}
	return a
}

func verdictOf(status int, p problem) verdict {
	switch {
	case status == http.StatusOK:
		return accepted
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return denied
	case p.Code == "incomplete_body": // the connection was too slow
		return deferred
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		return invalid
	case p.Code == "quota_exceeded":
		return overdrawn
	}
	return deferred
}
