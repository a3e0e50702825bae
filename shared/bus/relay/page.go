package relay

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

func (r *Relay) read(ctx context.Context, after Cursor) (messages []Outgoing, err error) {
	ctx, cancel := r.lease.bounded(ctx)
	defer cancel()
	err = pg.ReadAsSystem(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		messages, err = r.cfg.Read(ctx, tx, after, r.limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the outbox: %w", err)
	}
	return messages, nil
}

// publish writes a page, topic by topic, and returns how many messages
// from the first on are done.
func (r *Relay) publish(ctx context.Context, page []Outgoing) (done int, err error) {
	begun := r.lease.held
	r.lease.begun, r.published.coming = &begun, nil
	r.comparison.see(page)
	ctx, cancel := r.lease.inLease(ctx)
	defer cancel()
	for _, g := range byTopic(page) {
		at, err := r.cfg.Publisher.PublishContext(ctx, g.topic, g.messages...)
		if err != nil {
			return whole(page, g.first), err
		}
		r.metrics.records.Add(float64(len(g.messages)))
		if r.published.note(ctx, g, at) {
			r.published.checked = 0 // look at it before anything else is published
			return whole(page, g.first), errWentBack
		}
	}
	return len(page), nil
}

// topicGroup is a page's messages for one topic.
type topicGroup struct {
	topic    string
	messages []*message.Message
	cursors  []Cursor // of the messages
	first    int      // where on the page
}

// byTopic groups a page, with topics in the order of their first message.
func byTopic(page []Outgoing) (groups []topicGroup) {
	at := make(map[string]int)
	for i, out := range page {
		if out.Message == nil {
			continue
		}
		g, known := at[out.Topic]
		if !known {
			g = len(groups)
			at[out.Topic] = g
			groups = append(groups, topicGroup{topic: out.Topic, first: i})
		}
		groups[g].messages, groups[g].cursors = append(groups[g].messages, out.Message), append(groups[g].cursors, out.Cursor)
	}
	return groups
}

// whole returns n, or fewer: messages of one cursor only count together.
func whole(page []Outgoing, n int) int {
	for n > 0 && n < len(page) && page[n-1].Cursor == page[n].Cursor {
		n--
	}
	return n
}
