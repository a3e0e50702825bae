package weir

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = time.Minute
)

// backoff is the time before another attempt: full jitter, so that clients
// that failed together don't return together.
func backoff(attempt int) time.Duration {
	return rand.N(min(maxBackoff, firstBackoff<<min(attempt, 16)) + 1)
}

// sleep waits until a time. It says whether ctx was not done before.
func sleep(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// retryAfter reads Retry-After: seconds, or a time by the server's clock.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(serverTime(h, now)), 0)
	}
	return 0
}

// untilToken is the time until the rate limit has a request left. All are back
// at X-RateLimit-Reset, by the server's clock, at an even pace.
func untilToken(h http.Header, now time.Time) time.Duration {
	remaining, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	if err != nil || remaining > 0 {
		return 0
	}
	limit, _ := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	wait := time.Unix(reset, 0).Sub(serverTime(h, now)) / time.Duration(max(limit, 1))
	return min(max(wait, 0), maxBackoff)
}

func serverTime(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}
