package group

import (
	"crypto/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A Join is a client's wish to be a member.
type Join struct {
	Group, Member      string // Member is "" for a new one
	ClientID, Host     string
	Session, Rebalance time.Duration
	ProtocolType       string
	Protocols          []Protocol // best first
	TwoSteps           bool       // a new member is given an id first, and joins with that
}

// A JoinAnswer tells a member of the generation that it is in.
type JoinAnswer struct {
	Err                            error
	Member                         string
	Generation                     int32
	ProtocolType, Protocol, Leader string
	Members                        []JoinedMember // for the leader
}

type JoinedMember struct {
	ID       string
	Metadata []byte
}

// Join returns when all members have joined.
func (c *Coordinator) Join(j Join) JoinAnswer {
	a, later := c.join(j)
	if later != nil {
		return <-later
	}
	return a
}

func (c *Coordinator) join(j Join) (JoinAnswer, <-chan JoinAnswer) {
	refuse := func(err error) (JoinAnswer, <-chan JoinAnswer) { return JoinAnswer{Err: err, Member: j.Member}, nil }
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return refuse(kerr.CoordinatorNotAvailable)
	case j.Group == "":
		return refuse(kerr.InvalidGroupID)
	case j.Session < leastSession || j.Session > longestSession:
		return refuse(kerr.InvalidSessionTimeout)
	}
	g := c.group(j.Group)
	defer c.tidy(g)
	m, pending := g.members[j.Member], g.pending[j.Member]
	switch {
	case !g.accepts(j.Member, j.ProtocolType, j.Protocols):
		return refuse(kerr.InconsistentGroupProtocol)
	case j.Member == "" && j.TwoSteps:
		return JoinAnswer{Err: kerr.MemberIDRequired, Member: g.invite(j)}, nil
	case j.Member == "":
		m = g.admit(newID(j.ClientID), j)
	case pending != nil:
		pending.Stop()
		delete(g.pending, j.Member)
		m = g.admit(j.Member, j)
	case m == nil:
		return refuse(errUnknownMember)
	default:
		if a := g.rejoin(m, j); a != nil {
			return *a, nil
		}
	}
	m.answerJoin(JoinAnswer{Err: errUnknownMember}) // an earlier wait, of a connection that is gone
	waiting := make(chan JoinAnswer, 1)
	m.joining = waiting
	if g.state == preparing {
		g.completeJoin(false)
	} else {
		g.prepare()
	}
	return JoinAnswer{}, waiting
}

func newID(clientID string) string { return clientID + "-" + rand.Text() }

// invite gives out an id, for the time of a session.
func (g *group) invite(j Join) string {
	id := newID(j.ClientID)
	g.pending[id] = time.AfterFunc(j.Session, func() {
		g.c.mu.Lock()
		defer g.c.mu.Unlock()
		if _, stillPending := g.pending[id]; !stillPending {
			return
		}
		delete(g.pending, id)
		if g.state == preparing {
			g.completeJoin(false)
		}
		g.c.tidy(g)
	})
	return id
}

func (g *group) admit(id string, j Join) *member {
	g.joined++
	m := &member{id: id, number: g.joined, host: j.Host}
	m.set(j)
	if len(g.members) == 0 {
		g.protocolType = j.ProtocolType
	}
	g.members[id] = m
	g.touch(m)
	return m
}

func (m *member) set(j Join) {
	m.clientID, m.session, m.rebalance, m.protocols = j.ClientID, j.Session, j.Rebalance, j.Protocols
	if m.rebalance <= 0 {
		m.rebalance = j.Session
	}
}

// rejoin returns the answer for a member that has joined the current
// generation already; nil if there has to be another.
func (g *group) rejoin(m *member, j Join) *JoinAnswer {
	same := sameProtocols(m.protocols, j.Protocols)
	m.set(j)
	g.touch(m)
	if same && (g.state == completing || g.state == stable && m.id != g.leader) {
		a := g.joinAnswer(m)
		return &a
	}
	return nil
}

// A SyncAnswer is a member's partitions.
type SyncAnswer struct {
	Err                    error
	ProtocolType, Protocol string
	Assignment             []byte
}

// Sync returns once the leader has assigned the partitions, which it
// does with this call.
func (c *Coordinator) Sync(name, member string, generation int32, assignments map[string][]byte) SyncAnswer {
	a, later := c.sync(name, member, generation, assignments)
	if later != nil {
		return <-later
	}
	return a
}

func (c *Coordinator) sync(name, id string, generation int32, assignments map[string][]byte) (SyncAnswer, <-chan SyncAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, m, err := c.memberOf(name, id, generation)
	switch {
	case err != nil:
		return SyncAnswer{Err: err}, nil
	case g.state == preparing:
		return SyncAnswer{Err: kerr.RebalanceInProgress}, nil
	case g.state == stable:
		g.touch(m)
		return g.syncAnswer(m), nil
	}
	m.answerSync(SyncAnswer{Err: kerr.RebalanceInProgress}) // an earlier wait
	waiting := make(chan SyncAnswer, 1)
	m.syncing = waiting
	if id == g.leader {
		g.assign(assignments)
	}
	return SyncAnswer{}, waiting
}

// assign gives the members their partitions.
func (g *group) assign(assignments map[string][]byte) {
	g.state = stable
	for _, m := range g.members {
		m.assignment = assignments[m.id]
		m.answerSync(g.syncAnswer(m))
		g.touch(m)
	}
}

func (g *group) syncAnswer(m *member) SyncAnswer {
	return SyncAnswer{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
}

// memberOf returns a member of a group's current generation.
func (c *Coordinator) memberOf(name, id string, generation int32) (*group, *member, error) {
	if c.closed {
		return nil, nil, kerr.CoordinatorNotAvailable
	}
	g := c.groups[name]
	if g == nil {
		return nil, nil, errUnknownMember
	}
	m, err := g.current(id, generation)
	return g, m, err
}

// Heartbeat tells that a member is alive, and returns
// kerr.RebalanceInProgress if it has to join again.
func (c *Coordinator) Heartbeat(name, id string, generation int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, m, err := c.memberOf(name, id, generation)
	if err != nil {
		return err
	}
	g.touch(m)
	if g.state == preparing {
		return kerr.RebalanceInProgress
	}
	return nil
}

// Leave ends a membership.
func (c *Coordinator) Leave(name, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[name]
	if g == nil {
		return errUnknownMember
	}
	if timer := g.pending[id]; timer != nil {
		timer.Stop()
		delete(g.pending, id)
		if g.state == preparing {
			g.completeJoin(false)
		}
		c.tidy(g)
		return nil
	}
	m := g.members[id]
	if m == nil {
		return errUnknownMember
	}
	g.remove(m)
	return nil
}
