package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/logrange"
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
	err = pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
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
	r.begun, r.coming = &begun, nil
	r.comparison.see(page)
	ctx, cancel := r.inLease(ctx)
	defer cancel()
	for _, g := range byTopic(page) {
		at, err := r.cfg.Publisher.PublishContext(ctx, g.topic, g.messages...)
		if err != nil {
			return whole(page, g.first), err
		}
		r.metrics.records.Add(float64(len(g.messages)))
		if r.note(ctx, g, at) {
			r.healed = 0 // look at it before anything else is published
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

// A mark is a record that the relay has published: while the log has it,
// it has everything of its partition up to Position.
type mark struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	TopicID   string `json:"topic_id"` // hexadecimal
	Offset    int64  `json:"offset"`
	Digest    string `json:"digest"`   // of the message's id, which may name what is to be forgotten
	Position  int64  `json:"position"` // in the outbox
	Number    int64  `json:"number"`   // of the partition's marks, from 1
}

// isBeside reports whether two marks are in one partition.
func (m mark) isBeside(other mark) bool {
	return m.Topic == other.Topic && m.Partition == other.Partition
}

// marks are kept ever more sparsely towards the past: of each partition
// the newest marksPerLevel, and as many of every marksSpacing-th, and so
// on. So little more is published again than was lost, and a partition
// has less than 50 of them.
const (
	marksPerLevel = 4
	marksSpacing  = 8
)

// add appends a mark, and thins those of its partition.
func add(marks []mark, m mark) []mark {
	m.Number = 1
	for _, other := range marks {
		if other.isBeside(m) {
			m.Number = other.Number + 1
		}
	}
	marks = slices.DeleteFunc(marks, func(other mark) bool {
		return other.isBeside(m) && (other.Position >= m.Position || !isKept(other.Number, m.Number))
	})
	return append(marks, m)
}

// isKept reports whether a mark is kept, given the newest of its partition.
func isKept(number, newest int64) bool {
	for spacing := int64(1); spacing <= newest; spacing *= marksSpacing {
		if number%spacing == 0 && number > newest-marksPerLevel*spacing {
			return true
		}
	}
	return false
}

// upTo returns the marks of what is published up to a cursor.
func upTo(marks []mark, cursor Cursor) []mark {
	return slices.DeleteFunc(marks, func(m mark) bool { return m.Position > cursor.Position })
}

// note marks what a group of messages was published as. It reports
// whether a log took them at offsets that it had given before.
func (r *Relay) note(ctx context.Context, g topicGroup, at []bus.Position) (wentBack bool) {
	id := r.topicID(ctx, g.topic)
	newest := make(map[int]int) // by partition, an index of the group
	for i, position := range at {
		if position.Offset >= 0 { // else a repetition whose offset is unknown
			newest[position.Partition] = i
		}
	}
	for partition, i := range newest {
		m := mark{
			Topic: g.topic, Partition: partition, TopicID: id, Offset: at[i].Offset, Digest: digest(g.messages[i].UUID), Position: g.cursors[i].Position,
		}
		if slices.ContainsFunc(r.marks, func(other mark) bool { return other.isBeside(m) && other.Offset >= m.Offset }) {
			return true
		}
		r.coming = append(r.coming, m)
	}
	return false
}

// digest returns the beginning of an id's SHA-256.
func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// topicID returns the id of a topic as of the last look at it; empty
// where the brokers did not say.
func (r *Relay) topicID(ctx context.Context, topic string) string {
	if r.topics[topic] == "" {
		if id, _, err := r.log(topic).Bounds(ctx); err == nil {
			r.topics[topic] = hex.EncodeToString(id[:])
		}
	}
	return r.topics[topic]
}

// encode returns marks as JSON.
func encode(marks []mark) string {
	text, err := json.Marshal(append([]mark{}, marks...))
	if err != nil {
		panic("BUG: cannot encode marks: " + err.Error())
	}
	return string(text)
}

func (r *Relay) log(topic string) *logrange.Reader {
	brokers, dialer := r.cfg.Publisher.Servers()
	return &logrange.Reader{Brokers: brokers, Dialer: dialer, Topic: topic}
}
