package group

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// Bounds of what a member may ask for. The least session is short, so
// that dead members are found as fast as a group asks.
const (
	leastSession   = time.Second
	longestSession = 30 * time.Minute
)

// offsetsExpiry is how long the offsets of a group without members are
// kept: Apache Kafka's offsets.retention.minutes.
const offsetsExpiry = 7 * 24 * time.Hour

// A Coordinator has all groups. Safe for concurrent use.
type Coordinator struct {
	log    offsetLog
	clock  func() time.Time
	logger *slog.Logger

	mu     sync.Mutex
	groups map[string]*group // bounded by offsetsExpiry: those in use, or a while ago
	closed bool
}

// New returns the coordinator of the offsets in a log.
func New(log *storage.Partition, clock func() time.Time, logger *slog.Logger) (*Coordinator, error) {
	c := &Coordinator{log: offsetLog{log}, clock: clock, logger: logger, groups: map[string]*group{}}
	return c, c.load()
}

// Close answers all who wait. Their groups end.
func (c *Coordinator) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, g := range c.groups {
		g.dissolve()
	}
}

// group returns a group, a new one if there is none.
func (c *Coordinator) group(name string) *group {
	g := c.groups[name]
	if g == nil {
		g = &group{c: c, name: name, members: map[string]*member{}, pending: map[string]*time.Timer{}, offsets: map[Place]committed{}}
		c.groups[name] = g
	}
	return g
}

// tidy drops a group that has nothing.
func (c *Coordinator) tidy(g *group) {
	if len(g.members)+len(g.pending)+len(g.offsets) == 0 {
		delete(c.groups, g.name)
	}
}

// A Summary is a group in a list of them.
type Summary struct{ Name, ProtocolType, State string }

func (c *Coordinator) List() (all []Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		all = append(all, Summary{g.name, g.protocolType, g.state.String()})
	}
	slices.SortFunc(all, func(a, b Summary) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// A Description is a group with its members.
type Description struct {
	Summary

	Protocol string
	Members  []MemberDescription
}

type MemberDescription struct {
	ID, ClientID, Host   string
	Metadata, Assignment []byte
}

// Describe describes a group; false if there is none.
func (c *Coordinator) Describe(name string) (d Description, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[name]
	if g == nil {
		return Description{Summary: Summary{Name: name, State: "Dead"}}, false
	}
	d = Description{Summary: Summary{g.name, g.protocolType, g.state.String()}}
	if g.state == stable {
		d.Protocol = g.protocol
	}
	for _, m := range g.inOrder() {
		described := MemberDescription{ID: m.id, ClientID: m.clientID, Host: m.host}
		if g.state == stable {
			described.Metadata, described.Assignment = m.metadata(g.protocol), m.assignment
		}
		d.Members = append(d.Members, described)
	}
	return d, true
}

// Delete forgets a group without members, and its offsets.
func (c *Coordinator) Delete(name string) error {
	c.mu.Lock()
	g := c.groups[name]
	if g == nil {
		c.mu.Unlock()
		return kerr.GroupIDNotFound
	}
	if len(g.members) > 0 {
		c.mu.Unlock()
		return kerr.NonEmptyGroup
	}
	saved, err := c.forget(g)
	c.mu.Unlock()
	return wait(saved, err)
}

// forget drops a group with its offsets.
func (c *Coordinator) forget(g *group) (storage.Appended, error) {
	changes := make(map[Place]*committed, len(g.offsets))
	for place := range g.offsets {
		changes[place] = nil
	}
	saved, err := c.log.save(g.name, changes, c.clock())
	if err == nil {
		g.dissolve()
		delete(c.groups, g.name)
	}
	return saved, err
}

// ForgetTopic forgets the offsets in a topic that was deleted.
func (c *Coordinator) ForgetTopic(topic string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		changes := map[Place]*committed{}
		for place := range g.offsets {
			if place.Topic == topic {
				changes[place] = nil
			}
		}
		if _, err := c.log.save(g.name, changes, c.clock()); err != nil {
			return err
		}
		for place := range changes {
			delete(g.offsets, place)
		}
		c.tidy(g)
	}
	return nil
}

// Expire forgets the groups that nobody has used for long.
func (c *Coordinator) Expire(now time.Time) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		if len(g.members)+len(g.pending) == 0 && g.lastCommit().Before(now.Add(-offsetsExpiry)) {
			_, failed := c.forget(g)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// A Place is a partition of a topic.
type Place struct {
	Topic     string
	Partition int32
}

// An Offset is how far a group has come in a partition.
type Offset struct {
	At       int64
	Epoch    int32
	Metadata string
}

// A committed offset, as the log has it.
type committed struct {
	Offset   int64  `json:"offset"`
	Epoch    int32  `json:"epoch"`
	Metadata string `json:"metadata,omitempty"`
	Millis   int64  `json:"millis"` // when
}

// key is a record's key in the log.
type key struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// offsetBatch is how many offsets are in one batch at most.
const offsetBatch = 1000

// Commit keeps a group's offsets. A group with members takes them from
// its members alone; generation -1 is a client without membership.
func (c *Coordinator) Commit(name, id string, generation int32, offsets map[Place]Offset) error {
	c.mu.Lock()
	saved, err := c.commit(name, id, generation, offsets)
	c.mu.Unlock()
	return wait(saved, err)
}

func (c *Coordinator) commit(name, id string, generation int32, offsets map[Place]Offset) (saved storage.Appended, err error) {
	if name == "" {
		return saved, kerr.InvalidGroupID
	}
	if c.closed {
		return saved, kerr.CoordinatorNotAvailable
	}
	if g := c.groups[name]; generation >= 0 || id != "" || g != nil && len(g.members) > 0 {
		g, m, err := c.memberOf(name, id, generation)
		if err != nil {
			return saved, err
		}
		if g.state == completing {
			return saved, kerr.RebalanceInProgress
		}
		g.touch(m)
	}
	now, changes := c.clock().UnixMilli(), make(map[Place]*committed, len(offsets))
	for place, o := range offsets {
		changes[place] = &committed{o.At, o.Epoch, o.Metadata, now}
	}
	saved, err = c.log.save(name, changes, time.UnixMilli(now))
	if err != nil {
		return saved, err
	}
	g := c.group(name)
	for place, o := range changes {
		g.offsets[place] = *o
	}
	return saved, nil
}

// wait waits until what was saved is kept.
func wait(saved storage.Appended, err error) error {
	if err == nil {
		err = saved.Wait()
	}
	if errors.Is(err, storage.ErrNotWritten) {
		return kerr.CoordinatorNotAvailable // clients try again
	}
	return err
}

// Offsets returns what a group has committed.
func (c *Coordinator) Offsets(name string) map[Place]Offset {
	c.mu.Lock()
	defer c.mu.Unlock()
	offsets := map[Place]Offset{}
	if g := c.groups[name]; g != nil {
		for place, o := range g.offsets {
			offsets[place] = Offset{o.Offset, o.Epoch, o.Metadata}
		}
	}
	return offsets
}

func (g *group) lastCommit() time.Time {
	last := int64(0)
	for _, o := range g.offsets {
		last = max(last, o.Millis)
	}
	return time.UnixMilli(last)
}

// load reads the log of offsets.
func (c *Coordinator) load() error {
	err := c.log.each(func(r batch.Record) error {
		var k key
		if err := json.Unmarshal(r.Key, &k); err != nil {
			return fmt.Errorf("cannot read the committed offset at %d: %w", r.Offset, err)
		}
		g, place := c.group(k.Group), Place{k.Topic, k.Partition}
		if r.Value == nil {
			delete(g.offsets, place)
			return nil
		}
		var o committed
		if err := json.Unmarshal(r.Value, &o); err != nil {
			return fmt.Errorf("cannot read the committed offset at %d: %w", r.Offset, err)
		}
		g.offsets[place] = o
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range c.groups {
		c.tidy(g)
	}
	return nil
}

// An offsetLog is the log of committed offsets.
type offsetLog struct{ *storage.Partition }

// save appends changes; nil is an offset that is forgotten.
func (l offsetLog) save(name string, changes map[Place]*committed, at time.Time) (saved storage.Appended, err error) {
	pairs := make([]batch.Pair, 0, min(len(changes), offsetBatch))
	flush := func() error {
		if len(pairs) > 0 {
			saved, err = l.Append(batch.New(at.UnixMilli(), pairs))
			pairs = pairs[:0]
		}
		return err
	}
	for place, o := range changes {
		p := batch.Pair{}
		if p.Key, err = json.Marshal(key{name, place.Topic, place.Partition}); err != nil {
			return saved, err
		}
		if o != nil {
			if p.Value, err = json.Marshal(o); err != nil {
				return saved, err
			}
		}
		if pairs = append(pairs, p); len(pairs) == offsetBatch {
			if err := flush(); err != nil {
				return saved, err
			}
		}
	}
	return saved, flush()
}

// each reads all records.
func (l offsetLog) each(do func(batch.Record) error) error {
	for at, end := l.Bounds(); at < end; {
		batches, err := l.Read(nil, at, 1<<20, true)
		if err != nil {
			return err
		}
		for len(batches) > 0 {
			b := batch.Batch(batches)
			b, batches = b[:b.Size()], batches[b.Size():]
			if at = b.End(); b.Count() == 0 {
				continue
			}
			records, err := b.Records()
			if err != nil {
				return err
			}
			for _, r := range records {
				if err := do(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
