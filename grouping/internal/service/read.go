package service

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of the queue, and of a search.
const (
	waitingPerOrganization = 16
	waitingInAll           = 256
	longestWait            = 5 * time.Second
	comeBack               = 2 * time.Second // Retry-After of those who are refused
	longestSearch          = 2 * time.Second // then a page ends with what was found
)

// read runs fn in a snapshot of the organization's rows, in the fair order of organizations. A
// Problem 429 means that its share is used up.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	leave, err := s.enter(ctx, organization)
	if err != nil {
		return err
	}
	defer leave()
	return pg.Snapshot(ctx, s.Reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		return fn(tx, pg.Organization(organization))
	})
}

// enter waits for a place at work.
func (s *Service) enter(ctx context.Context, organization string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	leave, err = s.queue.Acquire(waiting, organization)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, s.refuse("Too many reads of your organization wait for their turn. Send fewer at once.")
	case err != nil && ctx.Err() == nil:
		return nil, s.refuse("The reads before yours take too long. Try again.")
	}
	return leave, err
}

func (s *Service) refuse(detail string) error {
	s.refused.Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(comeBack)
}
