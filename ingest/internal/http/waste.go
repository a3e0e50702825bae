package http

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
)

// freeWaste is the white space and the like that is no waste; more is
// none up to the entries' size.
const freeWaste = 64 << 10

// wasteOf returns the wasted bytes of a partly accepted body: rejected
// entries, and excessive white space and the like.
func wasteOf(batch *ingest.Batch, came int64) int64 {
	entries := batch.Bytes + batch.RejectedBytes
	return batch.RejectedBytes + max(0, came-2*entries-freeWaste)
}

// wastedTooMuch is the answer to a sender over its limit of waste.
func wastedTooMuch(who string, wait time.Duration) *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited,
		"Too many bytes came of which nothing could be accepted, for this "+who+". "+
			"Correct the faults of the earlier answers, and send again after the time in Retry-After.").
		RetryAfter(wait)
}

// isServersFault reports whether a request failed by no fault of its sender.
func isServersFault(err error) bool {
	var problem *httpapi.Problem
	return errors.As(err, &problem) && problem.Status >= http.StatusInternalServerError
}
