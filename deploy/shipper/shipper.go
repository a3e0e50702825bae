package shipper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Bounds of a request.
const (
	maxEntries = 1000
	maxBytes   = 1 << 20
	interval   = time.Second // that a line waits for others
)

// A Shipper sends lines as entries, in the order in which they come.
type Shipper struct {
	API      *client.Client
	APIKey   string
	Defaults Defaults
	Now      func() time.Time
	Say      func(text string) // that sending is delayed, and what was rejected

	Sent, Rejected int
}

// Run sends lines until they end; then what is left. It returns an error that
// no further attempt can mend.
func (s *Shipper) Run(ctx context.Context, lines <-chan Line) error {
	var batch []Line
	var body bytes.Buffer
	due := time.NewTimer(interval)
	defer due.Stop()
	for more := true; more; {
		var line Line
		full := false
		select {
		case line, more = <-lines:
			if more {
				batch = s.add(batch, &body, line)
				full = len(batch) == maxEntries || body.Len() >= maxBytes
			}
		case <-due.C:
			full = true
			due.Reset(interval)
		case <-ctx.Done():
			return ctx.Err()
		}
		if len(batch) > 0 && (full || !more) {
			if err := s.deliver(ctx, append(body.Bytes(), "]}"...), batch); err != nil {
				return err
			}
			batch = batch[:0]
			body.Reset()
		}
	}
	return nil
}

func (s *Shipper) add(batch []Line, body *bytes.Buffer, line Line) []Line {
	before := ","
	if len(batch) == 0 {
		before = `{"logs":[`
	}
	body.WriteString(before)
	body.Write(s.Defaults.Entry(line.Text, s.Now()))
	return append(batch, line)
}

// Limits of the pause before a batch is sent again.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = time.Minute
)

// deliver sends a batch until it is accepted or refused for good. All
// attempts have the effect of one.
func (s *Shipper) deliver(ctx context.Context, body []byte, batch []Line) error {
	request := client.Request{Method: http.MethodPost, Path: "/logs", Body: body, Header: map[string]string{
		"X-Api-Key": s.APIKey, "Content-Type": "application/json", "Prefer": "handling=lenient", "Idempotency-Key": uuid.NewString(),
	}}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		answer, err := s.API.Call(ctx, request)
		if err == nil {
			err = answer.Problem()
		}
		problem, isProblem := errors.AsType[*client.Problem](err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return s.settle(answer, batch)
		case isProblem && problem.Status == http.StatusBadRequest && len(problem.Errors) > 0:
			s.reject(len(batch), problem.Errors[0])
			accept(batch)
			return nil
		case isProblem && !problem.Temporary():
			return err
		}
		wait := pause/2 + rand.N(pause)
		if isProblem {
			wait = max(wait, problem.RetryAfter)
		}
		s.Say(fmt.Sprintf("%v; sending again in %s", err, wait.Round(time.Second/10)))
		lifecycle.Pause(ctx, wait)
	}
}

func (s *Shipper) settle(answer client.Answer, batch []Line) error {
	var got struct {
		Processed, Rejected int
		Errors              []client.Fault
	}
	if err := json.Unmarshal(answer.Body, &got); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	s.Sent += got.Processed
	if got.Rejected > 0 && len(got.Errors) > 0 {
		s.reject(got.Rejected, got.Errors[0])
	}
	accept(batch)
	return nil
}

func (s *Shipper) reject(entries int, first client.Fault) {
	s.Rejected += entries
	s.Say(fmt.Sprintf("%d entries are rejected, the first as %s: %s %s", entries, first.Pointer, first.Detail, first.Fix))
}

// accept keeps how far files were sent.
func accept(batch []Line) {
	for i, line := range batch {
		isLast := !slices.ContainsFunc(batch[i+1:], func(later Line) bool { return later.from == line.from })
		if line.from != nil && isLast {
			line.from.keep(line.end)
		}
	}
}
