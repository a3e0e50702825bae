package group

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A state of a group.
type state int

const (
	empty      state = iota // no members
	preparing               // members are joining
	completing              // the leader is assigning partitions
	stable
)

func (s state) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

var errUnknownMember = kerr.UnknownMemberID

// A group is guarded by its coordinator's lock.
type group struct {
	c            *Coordinator
	name         string
	state        state
	generation   int32
	protocolType string
	protocol     string
	leader       string
	joined       int // members since the start

	members map[string]*member     // bounded by the clients: their sessions end
	pending map[string]*time.Timer // ids given to clients that are to join with them, bounded by their sessions
	waiting *time.Timer            // ends the joining
	offsets map[Place]committed    // bounded by the partitions of all topics
}

func (g *group) inOrder() []*member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *member) int { return cmp.Compare(a.number, b.number) })
}

// prepare has all members join again.
func (g *group) prepare() {
	for _, m := range g.members {
		if m.syncing != nil {
			m.answerSync(SyncAnswer{Err: kerr.RebalanceInProgress})
			g.touch(m)
		}
		m.assignment = nil
	}
	g.state = preparing
	if g.waiting != nil {
		g.waiting.Stop()
	}
	longest := time.Duration(0)
	for _, m := range g.members {
		longest = max(longest, m.rebalance)
	}
	var over *time.Timer
	over = time.AfterFunc(longest, func() {
		g.c.mu.Lock()
		defer g.c.mu.Unlock()
		if g.waiting == over && g.state == preparing {
			g.completeJoin(true)
		}
	})
	g.waiting = over
	g.completeJoin(false)
}

// completeJoin begins a generation once all members have joined; if the
// time for it is over, without those that have not.
func (g *group) completeJoin(over bool) {
	for _, m := range g.members {
		if m.joining == nil && !over {
			return
		}
	}
	if len(g.pending) > 0 && !over {
		return
	}
	for _, m := range g.members {
		if m.joining == nil {
			delete(g.members, m.id)
			m.expiry.Stop()
		}
	}
	g.waiting.Stop()
	g.generation++
	if len(g.members) == 0 {
		g.state, g.protocol, g.leader = empty, "", ""
		g.c.tidy(g)
		return
	}
	g.begin()
}

// begin answers all that have joined.
func (g *group) begin() {
	g.state = completing
	g.protocol = g.vote()
	members := g.inOrder()
	if g.members[g.leader] == nil {
		g.leader = members[0].id
	}
	for _, m := range members {
		a := g.joinAnswer(m)
		m.answerJoin(a)
		g.touch(m)
	}
}

// joinAnswer tells a member of the current generation, and the leader
// of all members.
func (g *group) joinAnswer(m *member) JoinAnswer {
	a := JoinAnswer{Member: m.id, Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol, Leader: g.leader}
	if m.id != g.leader {
		return a
	}
	for _, other := range g.inOrder() {
		a.Members = append(a.Members, JoinedMember{other.id, other.metadata(g.protocol)})
	}
	return a
}

// vote returns the protocol that most members prefer of those that all know.
func (g *group) vote() (chosen string) {
	votes := map[string]int{}
	for _, m := range g.inOrder() {
		for _, p := range m.protocols {
			if g.allKnow(p.Name) {
				votes[p.Name]++
				if votes[p.Name] > votes[chosen] {
					chosen = p.Name
				}
				break
			}
		}
	}
	return chosen
}

func (g *group) allKnow(protocol string) bool {
	for _, m := range g.members {
		if !m.knows(protocol) {
			return false
		}
	}
	return true
}

// accepts reports whether a member with such protocols can be in the group.
func (g *group) accepts(id, protocolType string, protocols []Protocol) bool {
	if len(protocols) == 0 || protocolType == "" {
		return false
	}
	others := 0
	for _, m := range g.members {
		if m.id != id {
			others++
		}
	}
	if others == 0 {
		return true
	}
	return protocolType == g.protocolType && slices.ContainsFunc(protocols, func(p Protocol) bool {
		for _, m := range g.members {
			if m.id != id && !m.knows(p.Name) {
				return false
			}
		}
		return true
	})
}

// current returns a member of the current generation, or the error for
// one that is not.
func (g *group) current(id string, generation int32) (*member, error) {
	m := g.members[id]
	switch {
	case m == nil:
		return nil, errUnknownMember
	case generation != g.generation:
		return nil, kerr.IllegalGeneration
	}
	return m, nil
}

// dissolve ends all memberships and answers all who wait.
func (g *group) dissolve() {
	for _, m := range g.members {
		m.answerJoin(JoinAnswer{Err: kerr.CoordinatorNotAvailable})
		m.answerSync(SyncAnswer{Err: kerr.CoordinatorNotAvailable})
		m.expiry.Stop()
	}
	for _, timer := range g.pending {
		timer.Stop()
	}
	if g.waiting != nil {
		g.waiting.Stop()
	}
	clear(g.members)
	clear(g.pending)
	g.state = empty
}

// A Protocol is a way to assign partitions that a member knows.
type Protocol struct {
	Name     string
	Metadata []byte
}

// A member of a group.
type member struct {
	id, clientID, host string
	session, rebalance time.Duration
	protocols          []Protocol
	assignment         []byte
	number             int // in the order of joining

	joining chan JoinAnswer // nil: not waiting
	syncing chan SyncAnswer // nil: not waiting
	expiry  *time.Timer
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

func (m *member) knows(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p Protocol) bool { return p.Name == protocol })
}

func sameProtocols(a, b []Protocol) bool {
	return slices.EqualFunc(a, b, func(a, b Protocol) bool { return a.Name == b.Name && slices.Equal(a.Metadata, b.Metadata) })
}

// touch gives the member another session.
func (g *group) touch(m *member) {
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.expiry = time.AfterFunc(m.session, func() {
		g.c.mu.Lock()
		defer g.c.mu.Unlock()
		g.expire(m)
	})
}

// expire removes a member whose session is over. One that waits for the
// others is silent with reason.
func (g *group) expire(m *member) {
	if g.members[m.id] != m {
		return
	}
	if m.joining != nil || m.syncing != nil {
		g.touch(m)
		return
	}
	g.remove(m)
}

// remove ends a membership; the others share its partitions.
func (g *group) remove(m *member) {
	delete(g.members, m.id)
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.answerJoin(JoinAnswer{Err: errUnknownMember})
	m.answerSync(SyncAnswer{Err: errUnknownMember})
	switch g.state {
	case completing, stable:
		g.prepare()
	case preparing:
		g.completeJoin(false)
	case empty:
		g.c.tidy(g)
	}
}

func (m *member) answerJoin(a JoinAnswer) {
	if m.joining != nil {
		m.joining <- a
		m.joining = nil
	}
}

func (m *member) answerSync(a SyncAnswer) {
	if m.syncing != nil {
		m.syncing <- a
		m.syncing = nil
	}
}
