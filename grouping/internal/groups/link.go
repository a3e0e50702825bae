package groups

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Links lead from groups to what others know of them.
type Links struct {
	db       *store
	announce Announce
}

// Add adds a link to a group, and returns both.
func (l *Links) Add(ctx context.Context, request Request, id string, link grouping.Link) (postgres.Group, grouping.Link, error) {
	group, err := l.decide(ctx, request, id, []any{id, link}, func(of postgres.Group) ([]grouping.Decision, error) {
		if link.Webhook != "" {
			if err := l.db.checkWebhooks(request.Who.Organization, "webhook", link.Webhook); err != nil {
				return nil, err
			}
		}
		link.ID = "lnk_" + strings.ToLower(rand.Text())
		return of.State.Link(link, of.Version, l.db.now())
	})
	if at := slices.IndexFunc(group.State.Links, func(l grouping.Link) bool { return l.URL == link.URL }); at >= 0 {
		link = group.State.Links[at]
	}
	return group, link, err
}

// Remove removes a link of a group; one that is gone stays so.
func (l *Links) Remove(ctx context.Context, request Request, id, link string) (postgres.Group, error) {
	return l.decide(ctx, request, id, []any{id, link, "unlink"}, func(of postgres.Group) ([]grouping.Decision, error) {
		return of.State.Unlink(link, of.Version, l.db.now())
	})
}

// decide decides about a group, once.
func (l *Links) decide(ctx context.Context, request Request, id string, input any,
	decide func(of postgres.Group) ([]grouping.Decision, error),
) (postgres.Group, error) {
	return once(ctx, l.db, request, input, func(tx pgx.Tx) (project string, _ postgres.Group, err error) {
		locked, err := postgres.LockHeads(ctx, tx, pg.Organization(request.Who.Organization), []string{id})
		if err == nil && (len(locked) == 0 || !l.db.mayRead(request.Who, locked[0].Group.Project)) {
			err = noGroup(id)
		}
		if err != nil {
			return "", postgres.Group{}, err
		}
		m := locked[0]
		if m.Decisions, err = decide(m.Group); err != nil {
			return "", postgres.Group{}, fmt.Errorf("cannot decide about group %q: %w", m.Group.ID, err)
		}
		err = l.announce.record(ctx, tx, locked, request.By)
		return m.Group.Project, m.Group, err
	})
}
