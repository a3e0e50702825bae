package group

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

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
	log    *storage.Partition
	clock  func() time.Time
	logger *slog.Logger

	mu     sync.Mutex
	groups map[string]*group // bounded by offsetsExpiry: those in use, or a while ago
	closed bool
}

// New returns the coordinator of the offsets in a log.
func New(log *storage.Partition, clock func() time.Time, logger *slog.Logger) (*Coordinator, error) {
	c := &Coordinator{log: log, clock: clock, logger: logger, groups: map[string]*group{}}
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
	saved, err := c.save(g.name, changes)
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
		if _, err := c.save(g.name, changes); err != nil {
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
