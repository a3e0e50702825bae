package relay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/publisher"
)

// published is what the relay knows of what it has published.
type published struct {
	to      *publisher.Publisher
	marks   []mark            // by the lease
	coming  []mark            // of the last page
	topics  map[string]string // ids by name; bounded by those published to
	checked int64             // the epoch in which the marks were checked; 0: they are to be
	checkAt time.Time         // when next
	until   int64             // positions up to here are published again
}

// merged returns the marks with those of the last page.
func (p *published) merged() []mark {
	marks := slices.Clone(p.marks)
	for _, m := range p.coming {
		marks = add(marks, m)
	}
	return marks
}

// repeated returns how many messages of a page were lost before.
func (p *published) repeated(page []Outgoing) (n int) {
	for _, out := range page {
		if out.Message != nil && out.Cursor.Position <= p.until {
			n++
		}
	}
	return n
}

// note marks what a group of messages was published as. It reports
// whether a log took them at offsets that it had given before.
func (p *published) note(ctx context.Context, g topicGroup, at []bus.Position) (wentBack bool) {
	id := p.topicID(ctx, g.topic)
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
		if slices.ContainsFunc(p.marks, func(other mark) bool { return other.isBeside(m) && other.Offset >= m.Offset }) {
			return true
		}
		p.coming = append(p.coming, m)
	}
	return false
}

// check compares the marks with the log. lost says what it lacks of what
// is published up to a cursor; empty: nothing.
func (p *published) check(ctx context.Context, from Cursor) (_ Cursor, lost string, err error) {
	for _, newest := range newestOfEach(p.marks) {
		has, why, err := p.newestIntact(ctx, newest)
		if err != nil {
			return from, "", err
		}
		if why != "" {
			from.Position, lost = min(from.Position, has.Position), cmp.Or(lost, why)
		}
	}
	return from, lost, nil
}

// newestOfEach returns the newest mark of each partition.
func newestOfEach(marks []mark) (newest []mark) {
	for _, m := range marks {
		newest = slices.DeleteFunc(newest, m.isBeside)
		newest = append(newest, m)
	}
	return newest
}

// newestIntact returns up to where the log of a mark's partition has all
// that was published, and why not all of it; empty: it has.
func (p *published) newestIntact(ctx context.Context, of mark) (has Cursor, why string, err error) {
	id, bounds, err := p.log(of.Topic).Bounds(ctx)
	if err != nil {
		return has, "", err
	}
	p.topics[of.Topic] = hex.EncodeToString(id[:])
	for _, m := range slices.Backward(p.marks) {
		if !m.isBeside(of) {
			continue
		}
		missing, err := p.missing(ctx, m, bounds[m.Partition])
		if err != nil {
			return has, "", err
		}
		if missing == "" {
			return Cursor{m.Position}, why, nil
		}
		why = cmp.Or(why, missing)
	}
	return Cursor{}, why, nil
}

// missing says why the log lacks a mark's record; empty: it has it, or
// had it: a compacted log drops what is outdated, and any log what is old.
func (p *published) missing(ctx context.Context, m mark, log logrange.Bounds) (why string, err error) {
	where := fmt.Sprintf("partition %d of %s", m.Partition, m.Topic)
	switch {
	case m.TopicID != "" && m.TopicID != p.topics[m.Topic]:
		return where + " is that of a recreated topic", nil
	case m.Offset >= log.End:
		return fmt.Sprintf("%s ends at %d, and had a record at %d", where, log.End, m.Offset), nil
	case m.Offset < log.Start:
		return "", nil
	}
	_, err = p.log(m.Topic).Read(ctx, m.Partition, m.Offset, m.Offset+1, func(record bus.Record) {
		if digest(record.Header(bus.HeaderID)) != m.Digest {
			why = fmt.Sprintf("%s has another record at %d than it had", where, m.Offset)
		}
	})
	return why, err
}

// topicID returns the id of a topic as of the last look at it; empty
// where the brokers did not say.
func (p *published) topicID(ctx context.Context, topic string) string {
	if p.topics[topic] == "" {
		if id, _, err := p.log(topic).Bounds(ctx); err == nil {
			p.topics[topic] = hex.EncodeToString(id[:])
		}
	}
	return p.topics[topic]
}

func (p *published) log(topic string) *logrange.Reader {
	brokers, dialer := p.to.Servers()
	return &logrange.Reader{Brokers: brokers, Dialer: dialer, Topic: topic}
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

// digest returns the beginning of an id's SHA-256.
func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// encode returns marks as JSON.
func encode(marks []mark) string {
	text, err := json.Marshal(append([]mark{}, marks...))
	if err != nil {
		panic("BUG: cannot encode marks: " + err.Error())
	}
	return string(text)
}
