package groups

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// AddLink links a group to what others know of it, and returns both. If there
// is none that the principal may read, the error is postgres.ErrNoGroup.
func (s *Service) AddLink(ctx context.Context, request Request, id string, link grouping.Link) (postgres.Group, grouping.Link, error) {
	group, err := s.decideOne(ctx, request, id, []any{id, link}, func(of postgres.Group, now time.Time) ([]grouping.Decision, error) {
		link.ID = "lnk_" + strings.ToLower(rand.Text())
		return of.State.Link(link, of.Version, now)
	})
	if at := slices.IndexFunc(group.State.Links, func(l grouping.Link) bool { return l.URL == link.URL }); at >= 0 {
		link = group.State.Links[at]
	}
	return group, link, err
}

// RemoveLink removes a link of a group; one that is gone stays so.
func (s *Service) RemoveLink(ctx context.Context, request Request, id, link string) (postgres.Group, error) {
	return s.decideOne(ctx, request, id, []any{id, link, "unlink"}, func(of postgres.Group, now time.Time) ([]grouping.Decision, error) {
		return of.State.Unlink(link, of.Version, now)
	})
}

// decideOne decides about a group, once.
func (s *Service) decideOne(ctx context.Context, request Request, id string, input any,
	decide func(of postgres.Group, now time.Time) ([]grouping.Decision, error),
) (postgres.Group, error) {
	made, err := once(ctx, s, request, input, func(tx pgx.Tx) (made answer[postgres.Group], err error) {
		locked, err := postgres.LockHeads(ctx, tx, pg.Organization(request.Who.Organization), []string{id})
		if err == nil && (len(locked) == 0 || !s.mayRead(request.Who, locked[0].Group.Project)) {
			err = postgres.ErrNoGroup
		}
		if err != nil {
			return made, err
		}
		m := locked[0]
		if m.Decisions, err = decide(m.Group, s.Clock().UTC().Truncate(time.Microsecond)); err != nil {
			return made, fmt.Errorf("cannot decide about group %q: %w", m.Group.ID, err)
		}
		changed, err := postgres.Record(ctx, tx, locked, request.By)
		if err != nil {
			return made, err
		}
		return answerOf(m.Group.Project, m.Group), s.Announce(ctx, tx, changed)
	})
	return made.Body, err
}
