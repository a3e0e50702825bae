package http

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

func (b *Bodies) tooLarge() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusBadRequest, "body_too_large",
		fmt.Sprintf("The body has more than %d bytes after decompression. Send fewer entries in one request.", b.max)).With("limit", b.max)
}

// errNoFault marks errors that are not the sender's fault.
var errNoFault = errors.New("the sender is not to blame")

// problem is the answer to an error while a body was read.
func (b *Bodies) problem(err error, how encoding) error {
	var known *httpapi.Problem
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fairshare.ErrEvicted):
		return evicted()
	case errors.Is(err, admission.ErrOverShare):
		return errors.Join(throttled(), errNoFault)
	case errors.Is(err, fairshare.ErrTooMany):
		return errors.Join(tooManyUnderWay(), errNoFault)
	case errors.Is(err, fairshare.ErrFull):
		return errors.Join(overloaded(), errNoFault)
	case errors.Is(err, errBodyTooLarge):
		return b.tooLarge()
	case errors.Is(err, errTooSlow), errors.Is(err, os.ErrDeadlineExceeded):
		return httpapi.NewProblem(http.StatusBadRequest, "incomplete_body",
			fmt.Sprintf("The body came too slowly. After the first %s and within %s in all, the minimum upload rate is %d bytes a second, "+
				"and beyond %d bytes it is %d bytes a second, counted after decompression and without insignificant white space.",
				idleTime, bodyTime, minPace, smallBody, largePace)).
			WithHeader("Connection", "close")
	case errors.Is(err, errWindow):
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding",
			fmt.Sprintf("The body needs a window of more than %d bytes to be decompressed. Compress it with a smaller window.", zstdWindow))
	case errors.Is(err, errPadded):
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding",
			fmt.Sprintf("The body has more than twice as many bytes as it brings, and %d. Send it without empty blocks, frames and members.", padding))
	case how == identityEncoding:
		return httpapi.NewProblem(http.StatusBadRequest, "incomplete_body", "The body ended before its announced length.")
	}
	return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding", fmt.Sprintf("The body can't be read as %s.", how))
}

const codeOverloaded = "overloaded"

func overloaded() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"The service has more to do than it can hold. Send the whole request again.").RetryAfter(time.Second)
}

func tooManyUnderWay() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"As many requests as one organization, or one address without a key, may have are under way. "+
			"Send the whole request again when some of them are answered.").RetryAfter(time.Second)
}

func throttled() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"Large bodies of this organization come faster than its share while others send, too. Send the whole request again when one of those "+
			"under way is answered, or in bodies of at most 1 MiB.").RetryAfter(time.Second)
}

func overShare(wait time.Duration) *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"This organization sends more than its share while others send, too, and its requests under way have to come first. Send the whole request again.").
		RetryAfter(wait)
}

// evictedRetry is the Retry-After of an evicted body.
const evictedRetry = 5 * time.Second

func evicted() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"This request was evicted under memory pressure: your requests held the most memory. Send fewer entries in one request, or send them faster.").
		RetryAfter(evictedRetry).WithHeader("Connection", "close")
}
