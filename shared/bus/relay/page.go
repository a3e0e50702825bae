package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/pg"
)

// A repetition says where to repeat from, once a dead relay's messages
// in flight have arrived or never will.
type repetition struct {
	from  Cursor
	after time.Time
}

// repeat goes back, when it is due, to where this relay took over. The
// messages keep their ids.
func (r *Relay) repeat() {
	if r.again != nil && clock.Now().After(r.again.after) {
		r.held.cursor.Position = min(r.held.cursor.Position, r.again.from.Position)
		r.again = nil
	}
}

func (r *Relay) read(ctx context.Context, after Cursor) (messages []Outgoing, err error) {
	ctx, cancel := r.bounded(ctx)
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
	begun := r.held
	r.begun, r.published.coming = &begun, nil
	r.comparison.see(page)
	ctx, cancel := r.inLease(ctx)
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
